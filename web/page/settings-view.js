// The settings as a dialog. What is changed counts at once: it is stored, and a running conversation
// is told as far as it can be.

import { Parley } from '../parley-client.js';
import { make } from './elements.js';
import { SettingField, makeChoice, makeNumber, makeText, suggest } from './setting-field.js';
import { SERVER_DEFAULTS } from './settings-rules.js';
import { changeOf } from './settings-session.js';
import { VoicesView } from './voices-view.js';

const SERVERS_OWN = "the server's own"; // shown faintly in a field that is left to it

const NAMES = {
  voice: 'The voice',
  instructions: 'Empty instructions',
  'turnDetection.type': "The server's own turn taking",
  model: 'The language model',
  key: 'The key',
  codec: 'The coding of sound',
  leadMs: 'The lead',
};

export class SettingsView {
  #dialog;
  #store;
  #onApply;
  #onMicrophone;
  #voices;
  #fields = [];
  #status = make('p', { class: 'settings-status', role: 'status' });
  #microphone = makeChoice([['', 'The usual one']]);
  #model = makeText('');

  // onApply(session): a partial session for the running conversation, if there is one.
  // onMicrophone(choice): as Parley.useMicrophone takes it, likewise.
  // onVoice(isSounding): a voice is recorded or played, or no longer.
  constructor(dialog, store, { onApply, onMicrophone = null, onVoice = () => {} }) {
    this.#dialog = dialog;
    this.#store = store;
    this.#onApply = onApply;
    this.#onMicrophone = onMicrophone;
    const voices = make('div');
    this.#voices = new VoicesView(voices, store, onVoice);
    dialog.append(
      this.#head(),
      make(
        'div',
        { class: 'settings-body' },
        section('Voice', voices),
        section('How it talks', this.#instructions()),
        section('Turn taking', this.#turnTaking()),
        section('Sound', this.#sound()),
        section('Models and language', this.#models()),
        section('Connection', this.#connection()),
        section('Share', this.#sharing()),
      ),
      make('div', { class: 'settings-foot' }, this.#status, this.#resetButton()),
    );
    // A press beside the sheet closes it, as people expect of sheets.
    dialog.addEventListener('click', ({ target }) => target === dialog && dialog.close());
    dialog.addEventListener('close', () => this.#voices.stop());
    // However it is opened, its lists are fresh.
    new MutationObserver(() => dialog.open && this.#refresh()).observe(dialog, {
      attributeFilter: ['open'],
    });
    store.addEventListener('change', ({ detail }) => this.#apply(detail));
    if (store.cameFromLink) this.#tell('A link brought these settings.');
  }

  open() {
    if (!this.#dialog.open) this.#dialog.showModal();
  }

  #head() {
    const close = make(
      'button',
      { type: 'button', class: 'settings-close', 'aria-label': 'Close', onclick: () => this.#dialog.close() },
      '×',
    );
    return make('div', { class: 'settings-head' }, make('h2', {}, 'Settings'), close);
  }

  #instructions() {
    const control = make('textarea', {
      rows: 4,
      placeholder: 'You are a friendly voice assistant. Answer in one or two short sentences.',
    });
    const hint = "Who it is and what it should do. Empty: the server's own.";
    return this.#field('instructions', { label: 'Instructions', hint, control });
  }

  #turnTaking() {
    const kind = this.#field('turnDetection.type', {
      label: 'Your turn is over',
      control: makeChoice([
        ['', 'as the server decides'],
        ['semantic_vad', 'when you sound finished (semantic_vad)'],
        ['server_vad', 'after a silence (server_vad)'],
      ]),
    });
    const semantic = this.#field('turnDetection.eagerness', {
      label: 'Eagerness',
      hint: 'How soon it answers when you may go on: low waits longest.',
      control: makeChoice([
        ['', `usual (${SERVER_DEFAULTS.eagerness})`],
        ['low', 'low'],
        ['medium', 'medium'],
        ['high', 'high'],
      ]),
    });
    const silence = make(
      'div',
      { class: 'fields-in-row' },
      this.#number('silence_duration_ms', 'Silence, ms', 'after which you have finished', 0, 60000, 50),
      this.#number('threshold', 'Threshold', 'how sure it is of a voice, 0 to 1', 0, 1, 0.05),
      this.#number('prefix_padding_ms', 'Lead-in, ms', 'kept before the voice', 0, 10000, 50),
    );
    const show = () => {
      const { type } = this.#store.values.turnDetection;
      semantic.hidden = type !== 'semantic_vad';
      silence.hidden = type !== 'server_vad';
    };
    this.#store.addEventListener('change', show);
    show();
    return [kind, semantic, silence];
  }

  #number(name, label, hint, min, max, step) {
    const control = makeNumber(String(SERVER_DEFAULTS[name]), { min, max, step });
    return this.#field(`turnDetection.${name}`, { label, hint, control });
  }

  #sound() {
    const codecs = [
      ['auto', 'Opus where the browser has it'],
      ['opus', 'Opus: a tenth of the data'],
      ['pcm', 'PCM: uncompressed'],
    ];
    const lead = makeNumber(String(SERVER_DEFAULTS.leadMs), { min: 40, max: 60000, step: 20 });
    const hint =
      'How far sound is sent ahead. More bridges a bad network; an interruption takes effect later.';
    return [
      this.#field('microphoneId', { label: 'Microphone', control: this.#microphone }),
      this.#field('codec', { label: 'Coding', control: makeChoice(codecs) }),
      this.#field('leadMs', { label: 'Lead, ms', hint, control: lead }),
    ];
  }

  #models() {
    const language = makeText(SERVERS_OWN, ['en', 'de', 'es', 'fr', 'it', 'ja', 'nl', 'pt', 'zh']);
    const hint = 'Of what you say, as a code: en, de, pt-BR. A recogniser of one language hears that one.';
    return [
      this.#field('model', { label: 'Language model', control: this.#model }),
      this.#field('transcriptionModel', { label: 'Recogniser', control: makeText(SERVERS_OWN) }),
      this.#field('language', { label: 'Language', hint, control: language }),
    ];
  }

  #connection() {
    const attributes = { type: 'password', autocomplete: 'off', spellcheck: 'false', placeholder: 'none' };
    const hint = 'Only if this server asks for one. It stays in this browser.';
    return this.#field('key', { label: 'Key', hint, control: make('input', attributes) });
  }

  #sharing() {
    const link = make('input', { type: 'text', readonly: true, 'aria-label': 'Link with these settings' });
    const show = () => {
      link.value = this.#store.link();
    };
    const copy = async () => {
      link.select();
      try {
        await navigator.clipboard.writeText(link.value);
        this.#tell('The link is copied.');
      } catch {
        this.#tell('The browser does not let the page copy: the link is selected, copy it yourself.');
      }
    };
    this.#store.addEventListener('change', show);
    link.addEventListener('focus', () => link.select());
    show();
    const button = make('button', { type: 'button', class: 'plain-button', onclick: copy }, 'Copy link');
    const hint = 'Opens this page with these settings, but without the key and the microphone.';
    const words = make('p', { class: 'field-hint' }, hint);
    return make('div', { class: 'field' }, make('div', { class: 'share' }, link, button), words);
  }

  // Back to the beginning, and, until something else is changed, back again.
  #resetButton() {
    let forgotten = null;
    const button = make('button', { type: 'button', class: 'plain-button' }, 'Reset all');
    button.addEventListener('click', () => {
      const { values } = this.#store;
      const before = forgotten ? null : values;
      if (forgotten) this.#store.set(forgotten);
      else this.#store.reset();
      for (const field of this.#fields) field.restore();
      this.#tell(before ? 'All but the key is as it was at first.' : 'Your settings are back.');
      forgotten = before;
      button.textContent = forgotten ? 'Undo' : 'Reset all';
    });
    this.#store.addEventListener('change', () => {
      forgotten = null;
      button.textContent = 'Reset all';
    });
    return button;
  }

  #field(name, parts) {
    const field = new SettingField(this.#store, name, { ...parts, onFault: () => this.#tellSaved() });
    this.#fields.push(field);
    return field.element;
  }

  async #refresh() {
    const { key, microphoneId } = this.#store.values;
    const devices = await microphones();
    const known = devices.map(({ deviceId, label }) => [deviceId, label || 'A microphone']);
    const isGone = microphoneId && !known.some(([deviceId]) => deviceId === microphoneId);
    const gone = isGone ? [[microphoneId, 'The chosen one, which is not connected']] : [];
    const choice = makeChoice([['', 'The usual one'], ...known, ...gone]);
    this.#microphone.replaceChildren(...choice.children);
    this.#microphone.value = microphoneId;
    // Where the voices are refused, the models would be too.
    const models = (await this.#voices.refresh()) ? await modelNames(key) : [];
    this.#model.placeholder = models[0] ?? SERVERS_OWN;
    suggest(this.#model, models.slice(0, 1));
  }

  // Tells a running conversation, and the user what has to wait for the next one.
  #apply({ before, values, names }) {
    const { session, later } = changeOf(before, values);
    if (session) this.#onApply(session);
    const isMicrophone = names.includes('microphoneId') && this.#onMicrophone !== null;
    if (isMicrophone) this.#onMicrophone(this.#store.parleyOptions().microphone);
    const waiting = later.filter((name) => !(name === 'microphoneId' && isMicrophone));
    const what = waiting.length === 1 ? (NAMES[waiting[0]] ?? 'It') : 'Some of it';
    this.#tellSaved(waiting.length ? `${what} counts from the next conversation on.` : '');
  }

  // Fields that are out of sight (of another kind of turn taking) have nothing to mend.
  #tellSaved(addition = '') {
    const wrong = this.#fields.filter(({ isWrong, element }) => isWrong && !element.closest('[hidden]'));
    const labels = wrong.map(({ label }) => label).join('; ');
    const saved = wrong.length ? `Not saved: ${labels}. All else is saved.` : 'Saved.';
    this.#tell(`${saved} ${addition}`.trim());
    this.#status.classList.toggle('is-wrong', wrong.length > 0);
  }

  #tell(words) {
    this.#status.textContent = words;
    this.#status.classList.remove('is-wrong');
  }
}

function section(title, content) {
  return make('section', {}, make('h3', {}, title), ...[content].flat());
}

// Names only where the microphone was allowed once; before, the usual one is the only choice.
async function microphones() {
  const devices = await Parley.microphones().catch(() => []);
  return devices.filter(({ deviceId }) => deviceId && deviceId !== 'default');
}

async function modelNames(key) {
  try {
    const headers = key ? { Authorization: `Bearer ${key}` } : {};
    const response = await fetch('/v1/models', { headers });
    return (await response.json()).data.map(({ id }) => id);
  } catch {
    return []; // gone since the voices came: the next opening asks again
  }
}
