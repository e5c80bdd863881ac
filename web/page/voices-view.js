// The voices: which there are, which is chosen, and, where the server copies voices, one's own.

import { make } from './elements.js';
import { VoiceForm } from './voice-form.js';
import { VoicesError, deleteVoice, listVoices } from './voices-http.js';

const CANNOT_COPY =
  'This server’s voice cannot be taught another one from a recording. A server whose voice copies (kind higgs) can.';

export class VoicesView {
  #store;
  #list = make('fieldset', { class: 'voices' });
  #note = make('p', { class: 'field-hint voices-note', 'aria-live': 'polite' });
  #form;
  #adding;
  #voices = []; // as the server lists them, the default first

  // onVoice(isSounding): as in VoiceForm.
  constructor(root, store, onVoice) {
    this.#store = store;
    this.#form = new VoiceForm(store, { onAdded: (name) => this.#added(name), onVoice });
    this.#adding = make(
      'details',
      { class: 'voice-adding', hidden: true, ontoggle: () => this.#adding.open || this.stop() },
      make('summary', {}, 'Add your own voice'),
      this.#form.element,
    );
    root.append(this.#list, this.#note, this.#adding);
    store.addEventListener('change', ({ detail: { names } }) => {
      if (names.includes('key')) this.refresh();
      else if (names.includes('voice')) this.#draw();
    });
    this.#draw();
  }

  // Asks the server; gives whether it answered.
  async refresh() {
    try {
      const { data, can_copy } = await listVoices(this.#store.values.key);
      this.#voices = data;
      this.#say(can_copy ? '' : CANNOT_COPY);
      this.#adding.hidden = !can_copy;
    } catch (error) {
      this.#fail(error);
      this.#voices = [];
      this.#adding.hidden = true;
    }
    this.#draw();
    return this.#voices.length > 0;
  }

  // Ends a recording or its playing, as when the dialog closes.
  stop() {
    this.#form.stop();
  }

  #draw() {
    const focused = this.#list.contains(document.activeElement) ? document.activeElement.value : null;
    const chosen = this.#store.values.voice;
    const isKnown = chosen === '' || this.#voices.some(({ id }) => id === chosen);
    // The server's first voice is the one that it takes when none is asked for.
    const [usual, ...others] = this.#voices;
    const isUsual = chosen === '' || chosen === usual?.id;
    this.#list.replaceChildren(
      make('legend', { class: 'visually-hidden' }, 'Voice'),
      this.#choice('', usual?.name ?? 'The usual voice', usual ? 'the usual one' : '', true, isUsual),
      ...others.map((voice) => this.#voice(voice)),
      ...(isKnown ? [] : [this.#choice(chosen, chosen, 'not on this server', true)]),
    );
    if (focused !== null) this.#list.querySelector(`input[value="${CSS.escape(focused)}"]`)?.focus();
  }

  #voice({ id, name, kind, available, duration_ms }) {
    if (kind === 'configured') return this.#choice(id, name, 'of this server', true);
    const seconds = `${Math.round(duration_ms / 1000)} s`;
    const about = available ? `copied from ${seconds}` : 'this server cannot speak with it';
    const row = this.#choice(id, name, about, available);
    row.append(this.#deleteButton(name));
    return row;
  }

  #choice(id, name, about, isAvailable, isChosen = this.#store.values.voice === id) {
    const input = make('input', {
      type: 'radio',
      name: 'voice',
      value: id,
      disabled: !isAvailable,
      onchange: () => this.#store.set({ voice: id }),
    });
    input.checked = isChosen;
    const words = make('span', { class: 'voice-about' }, about);
    const label = make('label', {}, input, make('span', { class: 'voice-name' }, name), words);
    return make('div', { class: 'voice' }, label);
  }

  // Two presses: the first asks, and is forgotten when the focus goes elsewhere.
  #deleteButton(name) {
    let isAsked = false;
    const button = make('button', { type: 'button', class: 'plain-button is-small' });
    const show = () => {
      button.textContent = isAsked ? 'Delete for good' : 'Delete';
      button.setAttribute('aria-label', `${button.textContent}: ${name}`);
      button.classList.toggle('is-alarming', isAsked);
    };
    button.addEventListener('click', () => {
      if (isAsked) this.#delete(name);
      isAsked = true;
      show();
    });
    button.addEventListener('blur', () => {
      isAsked = false;
      show();
    });
    show();
    return button;
  }

  async #delete(name) {
    try {
      await deleteVoice(this.#store.values.key, name);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#store.values.voice === name) this.#store.set({ voice: '' });
    await this.refresh();
    this.#say(`${name} is deleted.`);
    this.#list.querySelector('input:checked')?.focus();
  }

  async #added(name) {
    this.#store.set({ voice: name });
    await this.refresh();
    this.#say(`${name} is kept on the server, and chosen.`);
    this.#adding.open = false;
    this.#list.querySelector('input:checked')?.focus();
  }

  #fail(error) {
    if (!(error instanceof VoicesError)) throw error;
    this.#say(error.message, true);
  }

  #say(words, isWrong = false) {
    this.#note.textContent = words;
    this.#note.classList.toggle('is-wrong', isWrong);
  }
}
