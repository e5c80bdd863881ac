// Entries in the order of the wire, shown or not: what is not shown still has its place, for others
// stand behind it. Tells what of it the user sees.

/** An entry is `{id, item, isHidden, ...}`; its item is null where there is nothing to show. */
export class Ordering {
  #entries = [];
  #onItem;
  #onRemoved;

  /** `onItem(item, isNew)` for what is shown, `onRemoved(id)` for what is not any more. */
  constructor({ onItem, onRemoved }) {
    this.#onItem = onItem;
    this.#onRemoved = onRemoved;
  }

  /** All entries, shown or not: a copy. */
  get entries() {
    return [...this.#entries];
  }

  /** The items that are shown. */
  get items() {
    return this.#entries.filter(isShown).map(({ item }) => item);
  }

  find(id) {
    return this.#entries.find((entry) => entry.id === id);
  }

  /** Append an entry. */
  insert(entry) {
    this.#entries.push(entry);
    if (isShown(entry)) this.#onItem(entry.item, true);
    return entry;
  }

  /** Put an entry behind the one that the wire names; null: first; undefined: it stays. */
  place(id, previousId) {
    if (previousId === undefined) return;
    const from = this.#entries.findIndex((entry) => entry.id === id);
    const before = this.#entries.findIndex((entry) => entry.id === previousId);
    const isUnknown = previousId !== null && before < 0; // never told of: it stays
    if (isUnknown || from === before + 1 || from === before) return;
    const [entry] = this.#entries.splice(from, 1);
    this.#entries.splice(before < from ? before + 1 : before, 0, entry);
    if (isShown(entry)) this.#onItem(entry.item, false);
  }

  /** Change an entry that has an item, if there is one; it is shown then. */
  change(id, change) {
    const entry = this.find(id);
    if (!entry?.item) return;
    change(entry);
    this.show(entry);
  }

  show(entry) {
    if (!entry.item) return;
    const wasHidden = Boolean(entry.isHidden);
    entry.isHidden = false;
    this.#onItem(entry.item, wasHidden);
  }

  hide(entry) {
    const wasShown = isShown(entry);
    entry.isHidden = true;
    if (wasShown) this.#onRemoved(entry.id);
  }

  remove(id) {
    const entry = this.find(id);
    if (!entry) return;
    this.#entries = this.#entries.filter((other) => other !== entry);
    if (isShown(entry)) this.#onRemoved(id);
  }
}

function isShown(entry) {
  return Boolean(entry.item) && !entry.isHidden;
}
