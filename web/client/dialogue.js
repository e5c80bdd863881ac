// What client and server say to each other within a conversation, over whichever socket: every
// event of the server goes through here, to all that keep account of it.

import { Asking } from './asking.js';
import { Conversation } from './conversation.js';
import { Latency } from './latency.js';
import { Tools } from './tools.js';
import { Voice } from './voice.js';

const DECISION_MS = 12100; // a turn of which nothing was told by then was none

export class Dialogue {
  #conversation;
  #latency;
  #asking;
  #tools;
  #voice = null;
  #send;
  #emit;
  #onChange;
  #clock;
  #told = 'listening'; // what the server says of the conversation
  #problem = null; // of the present response, told already
  #decisionTimer = null;
  #itemCount = 0;

  /**
   * @param {object} parts
   * @param {Record<string, import('./tools.js').Tool>} parts.tools
   * @param {(event: object, isKept: boolean) => void} parts.send isKept: it still means something
   *     after a loss of the socket
   * @param {(type: string, detail: object) => void} parts.emit an event for the page
   * @param {() => void} parts.onChange the state may be another
   * @param {() => number} parts.networkMs one way, at present
   * @param {() => number} parts.clock monotone ms
   */
  constructor({ tools, send, emit, onChange, networkMs, clock }) {
    this.#send = send;
    this.#emit = emit;
    this.#onChange = onChange;
    this.#clock = clock;
    this.#conversation = new Conversation({
      onItem: (item, isNew) => emit('item', { item, isNew }),
      onRemoved: (id) => emit('itemremoved', { id }),
      onHeard: (item) => emit('heard', { item }),
      onFailed: ({ code, message }) => this.complain(code ?? 'transcription_failed', message),
    });
    this.#latency = new Latency((turn) => emit('turn', { turn }), networkMs);
    this.#asking = new Asking((event) => send(event, true));
    this.#tools = new Tools({
      tools,
      send: (event) => send(event, true),
      onChanged: (item) => {
        emit('item', { item, isNew: false });
        emit('call', { item });
      },
      ask: (ids) => this.#asking.when(ids),
      newId: () => this.#newItemId(),
    });
  }

  get items() {
    return this.#conversation.items;
  }

  get turns() {
    return [...this.#latency.turns];
  }

  /** The tools as a session describes them. */
  get describedTools() {
    return this.#tools.describe();
  }

  /**
   * As the server says, but the voice speaks until it has been heard, and no longer; and is held
   * while cut short.
   */
  get state() {
    if (this.#told === 'hearing') return 'hearing';
    if (this.#voice?.isPlaying) return 'speaking';
    if (this.#told === 'speaking' && this.#voice?.isSilenced) return 'listening';
    if (this.#told === 'speaking' && this.#voice?.isDry) return 'thinking';
    if (this.#told !== 'held' || this.#voice?.isCutShort) return this.#told;
    return this.#asking.active === null ? 'listening' : 'thinking'; // nothing was to be heard
  }

  /** Speak through this sound; before the first event. */
  useSound(sound) {
    this.#conversation.outputFormat = sound.outputFormat;
    this.#voice = new Voice(sound, this.#conversation, (event) => this.#send(event, false), () => {
      this.#onChange();
    });
  }

  /** The loudspeaker tells what it has played. */
  progress(report) {
    this.#voice?.progress(report);
  }

  /** The loudspeaker tells that an item begins to be heard. */
  started({ itemId, atMs }) {
    this.#latency.started(itemId, atMs);
  }

  /** Take any server event. */
  take(event) {
    if (event.type === 'session.created') this.#told = 'listening';
    const isDealtWith = this.#asking.take(event);
    this.#conversation.take(event);
    this.#latency.take(event, this.#clock());
    const isNoNews = this.#voice.take(event);
    this.#tools.take(event, (id) => this.#conversation.get(id));
    if (!isDealtWith && !isNoNews) this.#attend(event);
    this.#onChange();
  }

  /** isHeardNow: whether there is a server to be interrupted. */
  say(text, isHeardNow) {
    if (isHeardNow) this.interrupt();
    const content = [{ type: 'input_text', text }];
    const item = { id: this.#newItemId(), type: 'message', role: 'user', content };
    this.#send({ type: 'conversation.item.create', item }, true);
    this.#asking.now();
  }

  interrupt() {
    this.#voice?.interrupt(this.#asking.active);
  }

  /** The socket is lost. */
  lose() {
    clearTimeout(this.#decisionTimer);
    this.#voice?.lose();
    this.#conversation.lose();
    this.#latency.lose();
    this.#asking.lose();
    this.#tools.lose();
  }

  /** A resumed conversation has been told anew. isReload: to a page that did not know it. */
  recover(isReload) {
    this.#tools.recover(this.items, isReload);
  }

  /** Tell the page of a problem that ends nothing. */
  complain(code, message) {
    this.#emit('problem', { code, message, isFatal: false });
  }

  #attend(event) {
    switch (event.type) {
      case 'session.created':
      case 'session.updated':
        this.#emit('session', { session: event.session });
        break;
      case 'parley.state':
        this.#told = event.state;
        break;
      case 'input_audio_buffer.speech_started':
        // What ends a hold is told a moment later; until then it is not to look like an answer.
        if (this.#told === 'held') this.#told = 'hearing';
        break;
      case 'input_audio_buffer.speech_stopped':
        clearTimeout(this.#decisionTimer);
        this.#decisionTimer = setTimeout(() => this.#conversation.dropLate(), DECISION_MS);
        break;
      case 'response.created':
        this.#problem = null;
        break;
      case 'response.done':
        this.#judge(event.response);
        break;
      case 'error':
        this.#complainOnce(event.error.code, event.error.message);
        break;
      default:
    }
  }

  #judge({ status, status_details: details }) {
    if (status === 'failed') {
      const { code, message } = details?.error ?? {};
      this.#complainOnce(code ?? 'response_failed', message ?? 'The answer failed.');
    } else if (status === 'incomplete') {
      this.complain(details?.reason ?? 'incomplete', 'The answer stops here: it reached its greatest length.');
    }
  }

  // A failure may be told twice: as an event of its own, and by the response that failed.
  #complainOnce(code, message) {
    if (this.#problem !== message) this.complain(code, message);
    this.#problem = message;
  }

  #newItemId() {
    this.#itemCount += 1;
    const [a, b] = crypto.getRandomValues(new Uint32Array(2));
    return `item_${a.toString(36)}${b.toString(36)}${this.#itemCount}`;
  }
}
