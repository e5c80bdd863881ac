// A voice of one's own: record or choose a file, say what is said in it, agree, send.

import { make } from './elements.js';
import { LONGEST_MS, SHORTEST_MS, VoiceRecorder } from './voice-recorder.js';
import { VoicesError, addVoice } from './voices-http.js';

// About twelve seconds, with most sounds of English in it.
const TO_READ =
  'In the early morning I like to walk along the river, when the air is clear and the town is quiet. On the way home I buy fresh bread, and think about what the day may bring.';
const CONSENT =
  'I am the person who speaks in this recording, or act with their consent, and agree that this server copies the voice.';
const NAME_PATTERN = '[A-Za-z0-9_\\-]{1,64}'; // the server's rule
const LONGEST_TRANSCRIPT = 4000; // characters, the server's rule

export class VoiceForm {
  #store;
  #onAdded;
  #onVoice;
  #isSounding = false;
  #sample = null; // Blob: what was recorded or chosen
  #recorder = null;
  #isWanted = false; // a recording: the browser may still be asking when it no longer is
  #player = null; // AudioContext while the sample is played
  #status = make('p', { class: 'field-hint', role: 'status' });
  #record = make('button', { type: 'button', class: 'plain-button', onclick: () => this.#toggle() });
  #listen = make('button', { type: 'button', class: 'plain-button', onclick: () => this.#play() });
  #file = make('input', { type: 'file', accept: 'audio/*', onchange: () => this.#choose() });
  #name = make('input', {
    type: 'text',
    required: true,
    pattern: NAME_PATTERN,
    autocomplete: 'off',
    spellcheck: 'false',
    title: 'Letters, digits, hyphens and underscores',
  });
  #transcript = make('textarea', { rows: 6, maxlength: LONGEST_TRANSCRIPT });
  #consent = make('input', { type: 'checkbox', required: true });
  #submit = make('button', { type: 'submit', class: 'strong-button' }, 'Add this voice');

  // onAdded(name); onVoice(isSounding): a voice is recorded or played, or no longer.
  constructor(store, { onAdded, onVoice }) {
    this.#store = store;
    this.#onAdded = onAdded;
    this.#onVoice = onVoice;
    const hint = 'Read it aloud, in a quiet room; or write here what your own words or file say.';
    this.element = make(
      'form',
      { class: 'voice-form', onsubmit: (event) => this.#send(event) },
      labelled('Its name', this.#name),
      labelled('What is said', this.#transcript, hint),
      make('div', { class: 'voice-sample' }, this.#record, this.#listen),
      labelled('Or a recording of 1 to 30 seconds', this.#file),
      make('label', { class: 'check' }, this.#consent, make('span', {}, CONSENT)),
      this.#status,
      this.#submit,
    );
    this.#reset();
  }

  stop() {
    this.#isWanted = false;
    this.#recorder?.stop();
    this.#stopPlaying();
  }

  #reset() {
    this.element.reset();
    this.#sample = null;
    this.#transcript.value = TO_READ;
    this.#show();
  }

  #show(words = '', isWrong = false) {
    this.#record.textContent = this.#recorder ? 'Stop recording' : 'Record';
    this.#record.classList.toggle('is-alarming', this.#recorder !== null);
    this.#file.disabled = this.#recorder !== null;
    this.#listen.textContent = this.#player ? 'Stop' : 'Listen to it';
    this.#listen.hidden = this.#sample === null || this.#recorder !== null;
    this.#status.textContent = words;
    this.#status.classList.toggle('is-wrong', isWrong);
    this.#tellVoice();
  }

  #tellVoice() {
    const isSounding = this.#recorder !== null || this.#player !== null;
    if (isSounding === this.#isSounding) return;
    this.#isSounding = isSounding;
    this.#onVoice(isSounding);
  }

  async #toggle() {
    if (this.#recorder) return this.#recorder.stop();
    this.#stopPlaying();
    const limit = LONGEST_MS / 1000;
    const tell = (ms) => {
      this.#record.textContent = `Stop recording (${Math.floor(ms / 1000)} of ${limit} s)`;
    };
    this.#isWanted = true;
    this.#record.disabled = true; // while the browser asks
    try {
      this.#recorder = await VoiceRecorder.start(this.#store.values.microphoneId, tell);
    } catch (error) {
      return this.#show(error.message, true);
    } finally {
      this.#record.disabled = false;
    }
    if (!this.#isWanted) this.#recorder.stop();
    this.#show('Recording. Speak now.');
    const { recording, ms } = await this.#recorder.done;
    this.#recorder = null;
    if (ms < SHORTEST_MS) return this.#show('That was too short: speak for a few seconds.', true);
    this.#sample = recording;
    this.#file.value = '';
    return this.#show(`Recorded ${(ms / 1000).toFixed(1)} s.`);
  }

  #choose() {
    const [file] = this.#file.files;
    if (!file) return;
    this.#stopPlaying();
    this.#sample = file;
    if (this.#transcript.value === TO_READ) this.#transcript.value = ''; // it says something else
    this.#show();
  }

  // Through Web Audio: the page's policy has media come from the server alone.
  async #play() {
    if (this.#player) return this.#stopPlaying();
    const player = new AudioContext();
    this.#player = player;
    this.#show();
    try {
      const buffer = await player.decodeAudioData(await this.#sample.arrayBuffer());
      if (this.#player !== player) return;
      const source = new AudioBufferSourceNode(player, { buffer });
      source.connect(player.destination);
      source.addEventListener('ended', () => this.#player === player && this.#stopPlaying());
      source.start();
    } catch {
      this.#stopPlaying();
      this.#show('This browser cannot play that file; the server may read it all the same.', true);
    }
  }

  #stopPlaying() {
    if (!this.#player) return;
    this.#player.close();
    this.#player = null;
    this.#show();
  }

  async #send(event) {
    event.preventDefault();
    if (!this.#sample) return this.#show('Record something first, or choose a file.', true);
    const voice = {
      name: this.#name.value,
      recording: this.#sample,
      transcript: this.#transcript.value.trim(),
      consent: CONSENT,
    };
    this.#submit.disabled = true;
    this.#show('Sending it.');
    try {
      await addVoice(this.#store.values.key, voice);
    } catch (error) {
      if (!(error instanceof VoicesError)) throw error;
      return this.#show(error.message, true);
    } finally {
      this.#submit.disabled = false;
    }
    this.#reset();
    return this.#onAdded(voice.name);
  }
}

function labelled(label, control, hint = null) {
  const words = hint && make('span', { class: 'field-hint' }, hint);
  return make('label', { class: 'field' }, make('span', { class: 'field-label' }, label), control, words);
}
