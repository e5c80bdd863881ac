// The one live region: says to screen readers each text once, when it is finished, and what else has
// no sound.

const KEPT = 6; // lines that stay in the region: enough that none vanishes before it is spoken
const SPEAKERS = { user: 'You', assistant: 'Parley', system: 'Note' };

export class Announcer {
  #region;
  #unfinished = new Set(); // ids of the items that grow at present
  isRepeating = false; // whether what comes is told anew: no news

  constructor(region) {
    this.#region = region;
  }

  clear() {
    this.#unfinished.clear();
    this.#region.replaceChildren();
  }

  say(words) {
    const line = document.createElement('p');
    line.dir = 'auto';
    line.textContent = words;
    this.#region.append(line);
    while (this.#region.childElementCount > KEPT) this.#region.firstElementChild.remove();
  }

  // To be called whenever an item is new or has changed.
  note(item) {
    if (isGrowing(item)) {
      this.#unfinished.add(item.id);
      return;
    }
    if (!this.#unfinished.delete(item.id) || this.isRepeating) return;
    const words = item.kind === 'call' ? describeCall(item.call) : describeMessage(item);
    if (words) this.say(words);
  }
}

function isGrowing({ kind, call, isWaiting, isInterim }) {
  if (kind === 'call') return call.status === 'writing' || call.status === 'running';
  return isWaiting || isInterim;
}

function describeMessage({ role, text }) {
  return text ? `${SPEAKERS[role]}: ${text}` : '';
}

function describeCall({ name, status, output }) {
  if (status === 'done') return `Function ${name} answered: ${output ?? ''}`;
  return status === 'failed' ? `Function ${name} failed: ${output ?? ''}` : '';
}
