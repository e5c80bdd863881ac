// The conversation to take along: its text and figures as JSON, both sides' sound as WAV.

import { make } from './elements.js';

const RELEASE_AFTER_MS = 60000; // a browser that asks where to save reads the file only then
const WATCH_EVERY_MS = 500; // a button that becomes usable within a blink needs no events

export class Downloads {
  #present;
  #text;
  #sound;

  // present: () => the Parley whose conversation is shown, or null.
  constructor(root, present) {
    this.#present = present;
    this.#text = make('button', { type: 'button', onclick: () => this.#saveText() }, 'Conversation (JSON)');
    this.#sound = make('button', { type: 'button', onclick: () => this.#saveSound() }, 'Recording (WAV)');
    root.append(this.#text, this.#sound);
    this.refresh();
    setInterval(() => this.refresh(), WATCH_EVERY_MS);
  }

  // There is a conversation to save once something was said in it; its sound goes with it.
  refresh() {
    const isEmpty = !this.#present()?.items.length;
    this.#text.disabled = isEmpty;
    this.#sound.disabled = isEmpty;
  }

  #saveText() {
    const parley = this.#present();
    const text = `${JSON.stringify(parley.toJSON(), null, 2)}\n`;
    save(new Blob([text], { type: 'application/json' }), `${nameOf(parley)}.json`);
  }

  #saveSound() {
    const parley = this.#present();
    save(parley.recording(), `${nameOf(parley)}.wav`);
  }
}

// parley-2025-06-01-1845.json: when it began, in the user's own time.
function nameOf(parley) {
  const told = parley.toJSON().started_at;
  const began = told ? new Date(told) : new Date();
  const local = new Date(began.getTime() - began.getTimezoneOffset() * 60000);
  const [day, time] = local.toISOString().split('T');
  return `parley-${day}-${time.slice(0, 5).replace(':', '')}`;
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = make('a', { href: address, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), RELEASE_AFTER_MS);
}
