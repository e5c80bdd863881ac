// One setting as a form field: a label, what it means, a native control, and what is wrong.
//
// A value that is wrong is told beside the field and not stored; the control keeps it to be mended.

import { make } from './elements.js';
import { faultOf, valueOf, withValue } from './settings-rules.js';

let made = 0; // for ids

export class SettingField {
  #store;
  #name;
  #control;
  #onFault;
  #fault = make('p', { class: 'field-fault', 'aria-live': 'polite', hidden: true });

  // label, hint: words. control: one of the elements that the functions below make.
  // onFault(): what is wrong with the value has changed; before anything is stored.
  constructor(store, name, { label, hint = null, control, onFault }) {
    const id = `setting-${++made}`;
    const about = hint && make('p', { class: 'field-hint', id: `${id}-hint` }, hint);
    this.#store = store;
    this.#name = name;
    this.#control = control;
    this.#onFault = onFault;
    this.label = label;
    control.id = id;
    this.#fault.id = `${id}-fault`;
    const described = [about?.id, this.#fault.id].filter(Boolean).join(' ');
    control.setAttribute('aria-describedby', described);
    control.addEventListener('change', () => this.#keep());
    store.addEventListener('change', () => this.show());
    this.element = make('div', { class: 'field' }, make('label', { for: id }, label), control, about, this.#fault);
    this.show();
  }

  get isWrong() {
    return !this.#fault.hidden;
  }

  // What the store has, unless what is in the control is still wrong.
  show() {
    if (this.isWrong) return;
    const value = valueOf(this.#store.values, this.#name);
    const text = value === null ? '' : String(value);
    if (this.#control.value !== text) this.#control.value = text;
  }

  // Forgets what is wrong.
  restore() {
    this.#tell(null);
    this.#control.value = ''; // letters in a field of numbers read as empty, and would stay
    this.show();
  }

  #keep() {
    const value = this.#read();
    const fault = faultOf(this.#name, value);
    this.#tell(fault);
    if (fault === null) this.#store.set(withValue({}, this.#name, value));
  }

  #tell(fault) {
    const words = fault ?? '';
    if (words === this.#fault.textContent) return;
    this.#fault.textContent = words;
    this.#fault.hidden = fault === null;
    this.#control.setAttribute('aria-invalid', String(fault !== null));
    this.#onFault();
  }

  #read() {
    if (this.#control.type !== 'number') return this.#control.value.trim();
    if (this.#control.validity.badInput) return NaN; // letters, say, which read as empty
    return this.#control.value === '' ? null : Number(this.#control.value);
  }
}

// options: [value, words] each.
export function makeChoice(options) {
  return make('select', {}, options.map(([value, words]) => make('option', { value }, words)));
}

// suggestions: words that are offered and not demanded.
export function makeText(placeholder, suggestions = []) {
  const attributes = { type: 'text', placeholder, autocomplete: 'off', spellcheck: 'false' };
  const input = make('input', attributes);
  suggest(input, suggestions);
  return input;
}

export function makeNumber(placeholder, { min, max, step }) {
  return make('input', { type: 'number', inputmode: 'decimal', placeholder, min, max, step });
}

// Replaces what a text field offers.
export function suggest(input, words) {
  const list = input.list ?? make('datalist', { id: `suggestions-${++made}` });
  list.replaceChildren(...words.map((value) => make('option', { value })));
  if (words.length && !input.list) {
    input.setAttribute('list', list.id);
    document.body.append(list);
  }
}
