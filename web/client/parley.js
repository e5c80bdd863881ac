// A conversation with a Parley server, in a browser: its life from connect() to close(), over sound
// and sockets. What is said within it is the dialogue's.

import { Connection } from './connection.js';
import { Dialogue } from './dialogue.js';
import { ParleyError } from './errors.js';
import { completed } from './options.js';
import { Reconnecting } from './reconnecting.js';
import { Recording } from './recording.js';
import { FORMATS_ID, formatsUpdate, hasFormats, sessionUpdate } from './setup.js';
import { Microphone } from './sound/microphone.js';
import { TAKEN_OVER, TOO_LARGE, explainClose, socketAddress } from './wire.js';

const NORMAL = 1000;
const GOING_AWAY = 1001; // the server stops, or the session's time is over
const AWAITING = new Set(['thinking', 'speaking']); // states in which something is to come

/**
 * One conversation. After its end it stays readable; for another one make another Parley.
 *
 * Events are CustomEvents: `state` {state, before}, `item` {item, isNew}, `itemremoved` {id}, `heard`
 * {item}, `turn` {turn}, `call` {item}, `problem` {code, message, isFatal}, `microphone` {microphone},
 * `reconnecting` {attempt, inMs}, `resumed` {}, `closed` {code, message}, `session` {session}, `server`
 * {event}, `sent` {event}: what goes over the wire, but for audio to the server and the pulse.
 */
export class Parley extends EventTarget {
  #options;
  #life = 'idle'; // | 'connecting' | 'open' | 'reconnecting' | 'closed'
  #state = 'idle'; // as last told
  #startedAt = null;
  #sessionId = null;
  #isMuted = false;
  #hasExpired = false;
  #ready = null; // {resolve, reject} of the connect() that waits
  #sound = null;
  #line = null;
  #recording = new Recording();
  #dialogue;

  /**
   * @param {object} [options]
   * @param {string} [options.url] of the server or its endpoint; default: the page's own host
   * @param {string | null} [options.key]
   * @param {object} [options.session] partial session of the protocol, for a new conversation
   * @param {boolean | {deviceId: string}} [options.microphone] false: text in, sound out
   * @param {'auto' | 'opus' | 'pcm'} [options.codec]
   * @param {number | 'off' | null} [options.leadMs] how far sound is sent ahead; null: the server's own
   * @param {string | null} [options.resume] the token of an earlier conversation, after a reload
   * @param {Record<string, import('./tools.js').Tool>} [options.tools]
   * @param {() => number} [options.clock] monotone ms, for tests; likewise Socket, Sound and fetch
   * @throws {TypeError | RangeError} where one of them cannot be meant
   */
  constructor(options = {}) {
    super();
    this.#options = completed(options);
    const { clock, tools } = this.#options;
    this.#dialogue = new Dialogue({
      tools,
      clock,
      send: (event, isKept) => this.#send(event, isKept),
      emit: (type, detail) => this.#emit(type, detail),
      onChange: () => this.#refresh(),
      networkMs: () => this.#line?.networkMs ?? 0,
    });
  }

  /** Microphones to choose from: [{deviceId, label}]; labels are empty before the first permission. */
  static microphones() {
    return Microphone.list();
  }

  // ---- what a page does ----------------------------------------------------------------------

  /**
   * Open sound and conversation. Call it from a user's gesture, or browsers may hold the sound back.
   * @returns {Promise<void>} when the conversation is open
   * @throws {ParleyError} by its code: microphone_denied, microphone_missing, microphone_busy,
   *     microphone_insecure, microphone_failed, sound_blocked, unauthorised, full, starting,
   *     unreachable, refused, session_over (it was closed meanwhile)
   */
  async connect() {
    if (this.#life !== 'idle') throw new Error('A Parley connects once: make another one.');
    this.#live('connecting');
    try {
      await this.#openSound();
      await this.#openLine();
    } catch (error) {
      await this.#release();
      if (this.#life !== 'closed') this.#live('idle');
      throw error;
    } finally {
      this.#ready = null;
    }
    if (this.#life === 'connecting') this.#live('open');
  }

  /**
   * End the conversation and free microphone and loudspeaker.
   * @returns {Promise<void>} when they are free
   */
  async close() {
    const wasBegun = this.#life !== 'idle';
    if (this.#life === 'closed') return;
    this.#live('closed');
    this.#ready?.reject(abandoned());
    await this.#release();
    if (wasBegun) this.#emit('closed', { code: NORMAL, message: null });
  }

  /** Say something in writing. What is being said is interrupted, and the text answered. */
  say(text) {
    if (typeof text !== 'string') throw new TypeError(`say() takes a text, not ${text}.`);
    if (text.trim() && this.#isLive) this.#dialogue.say(text, this.#line.isOpen);
  }

  /** Silence at once; the conversation holds what was heard. */
  interrupt() {
    if (this.#line?.isOpen) this.#dialogue.interrupt();
  }

  /** From now on the server hears silence, until unmute(). */
  mute() {
    this.#isMuted = true;
    this.#sound?.mute();
  }

  unmute() {
    this.#isMuted = false;
    this.#sound?.unmute();
  }

  /**
   * Change the microphone or drop it, before or during the conversation.
   * @param {boolean | {deviceId: string}} choice
   * @throws {ParleyError} with a code that begins with microphone_; the old one stays in use then
   */
  async useMicrophone(choice) {
    if (this.#sound) {
      await this.#sound.useMicrophone(choice);
      this.#emit('microphone', { microphone: this.microphone });
    }
    this.#options.microphone = choice;
  }

  /** Change settings: a partial session of the protocol. Its formats are left out: sound has its own. */
  update(session) {
    const tools = session.tools ? this.#dialogue.describedTools : [];
    this.#send(sessionUpdate(session, tools), true);
  }

  /** Send any event of the protocol. */
  send(event) {
    this.#send(event, event.type !== 'input_audio_buffer.append');
  }

  // ---- what a page sees ----------------------------------------------------------------------

  /** idle, connecting, listening, hearing, thinking, speaking, held, reconnecting or closed. */
  get state() {
    return this.#state;
  }

  get isMuted() {
    return this.#isMuted;
  }

  /** @returns {import('./item.js').Item[]} in order */
  get items() {
    return this.#dialogue.items;
  }

  /** @returns {import('./latency.js').Turn[]} oldest first */
  get turns() {
    return this.#dialogue.turns;
  }

  /** Peaks since the last read, 0 to 1: {input, output}. */
  get levels() {
    const { input, output } = this.#sound?.levels() ?? { input: 0, output: 0 };
    return { input: this.#isMuted ? 0 : input, output };
  }

  /** {label, deviceId, settings} as they really are; null without one. */
  get microphone() {
    return this.#sound?.microphone ?? null;
  }

  /** 'opus' or 'pcm'; null while there is no sound. */
  get codec() {
    return this.#sound?.codec ?? null;
  }

  get sessionId() {
    return this.#sessionId;
  }

  /** With it another page goes on with this conversation, for a while; or null. */
  get resumeToken() {
    return this.#line?.resumeToken ?? null;
  }

  /** The conversation to keep: {session_id, started_at (ISO 8601), items, turns}. */
  toJSON() {
    const { items, turns } = this;
    return { session_id: this.#sessionId, started_at: this.#startedAt, items, turns };
  }

  /**
   * Both sides as they were sent and heard: audio/wav, PCM16, 24 kHz, the user left and the agent
   * right. Of more than an hour the last one.
   * @returns {Blob}
   */
  recording() {
    return this.#recording.toBlob();
  }

  // ---- sound and sockets ---------------------------------------------------------------------

  get #isLive() {
    return this.#life === 'open' || this.#life === 'reconnecting';
  }

  async #openSound() {
    const { microphone, codec, Sound: Used } = this.#options;
    const complain = ({ code, message }) => this.#dialogue.complain(code, message);
    const tellMicrophone = (changed) => this.#emit('microphone', { microphone: changed });
    const sound = await Used.open({
      microphone,
      codec,
      // Dropped while there is no socket: nobody wants to hear late what was said meanwhile.
      onPacket: (audio) => this.#line?.send({ type: 'input_audio_buffer.append', audio }),
      onProgress: (report) => this.#dialogue.progress(report),
      onStarted: (start) => this.#dialogue.started(start),
      onRecorded: (channel, samples, atSample) => this.#recording.add(channel, samples, atSample),
      onMicrophoneChanged: tellMicrophone,
      onMicrophoneLost: (error) => {
        complain(error);
        tellMicrophone(null);
      },
      onProblem: complain,
    });
    if (this.#life !== 'connecting') {
      await sound.close();
      throw abandoned();
    }
    this.#sound = sound;
    if (this.#isMuted) sound.mute();
    this.#dialogue.useSound(sound);
    if (sound.microphone) tellMicrophone(sound.microphone);
  }

  // Resolves when the server has taken the formats.
  async #openLine() {
    const ready = new Promise((resolve, reject) => {
      this.#ready = { resolve, reject };
    });
    ready.catch(() => {}); // where the socket fails first, nobody waits for it
    const { resume, clock } = this.#options;
    this.#line = new Reconnecting(
      (token, signal) => this.#dial(token, signal),
      {
        onEvent: (event) => this.#receive(event),
        onOpen: (greeting, isResumed) => this.#open(greeting, isResumed),
        onSettled: (isReload) => this.#dialogue.recover(isReload),
        onLost: (loss) => this.#lose(loss),
        onWaiting: (wait) => this.#emit('reconnecting', wait),
        onOver: (ending) => this.#endOver(ending),
      },
      clock,
    );
    const goesOn = await this.#line.connect(resume);
    if (resume && !goesOn) {
      this.#dialogue.complain('session_over', 'The earlier conversation is over. This is a new one.');
    }
    await ready;
  }

  #dial(resume, signal) {
    const { url, key, leadMs, clock, fetch, Socket = globalThis.WebSocket } = this.#options;
    const address = socketAddress(url, { resume, leadMs });
    const isResuming = resume !== 'new';
    return Connection.open({ address, key, isResuming, signal, clock, Socket, fetch });
  }

  // A socket is open; the first event has come. Formats leave before any audio can.
  #open(greeting, isResumed) {
    const { session } = greeting;
    const { session: wanted, resume } = this.#options;
    this.#sessionId = session.id;
    this.#startedAt ??= new Date().toISOString();
    this.#receive(greeting);
    const isNew = !isResumed || (this.#life === 'connecting' && !resume);
    if (isNew) {
      const tools = this.#dialogue.describedTools;
      this.#send(formatsUpdate(wanted, this.#sound));
      if (Object.keys(wanted).length + tools.length > 0) this.#send(sessionUpdate(wanted, tools));
    } else if (hasFormats(session, this.#sound)) {
      this.#ready?.resolve();
    } else {
      this.#send(formatsUpdate(session, this.#sound));
    }
    if (this.#life !== 'reconnecting') return;
    this.#live('open');
    this.#emit('resumed', {});
  }

  #receive(event) {
    this.#emit('server', { event });
    if (event.type === 'session.updated') this.#ready?.resolve();
    if (event.type === 'error') this.#noteError(event.error);
    this.#dialogue.take(event);
  }

  #noteError({ code, message, event_id: eventId }) {
    if (code === 'session_expired') this.#hasExpired = true;
    if (eventId === FORMATS_ID) this.#ready?.reject(new ParleyError('refused', message));
  }

  #lose({ code }) {
    if (code === TOO_LARGE) this.#dialogue.complain('too_large', explainClose(code, ''));
    this.#dialogue.lose();
    if (this.#life === 'open') this.#live('reconnecting');
  }

  #endOver({ code, message, error }) {
    const problem = error ?? this.#explainEnd(code, message);
    if (this.#ready) {
      this.#ready.reject(problem);
      return;
    }
    this.#live('closed');
    this.#emit('problem', { code: problem.code, message: problem.message, isFatal: true });
    this.#release().then(() => this.#emit('closed', { code, message: problem.message }));
  }

  #explainEnd(code, message) {
    if (this.#hasExpired || code === NORMAL || code === TAKEN_OVER) {
      return new ParleyError('session_over', message);
    }
    if (code !== GOING_AWAY) return new ParleyError('unreachable', message);
    return new ParleyError('server_stopping', `The server is stopping. ${message}`);
  }

  async #release() {
    this.#line?.close();
    this.#dialogue.lose();
    const sound = this.#sound;
    this.#sound = null;
    await sound?.close();
  }

  // ---- telling -------------------------------------------------------------------------------

  #send(event, isKept = false) {
    if (this.#line?.send(event, isKept)) this.#emit('sent', { event });
  }

  #live(life) {
    this.#life = life;
    this.#refresh();
  }

  #refresh() {
    const before = this.#state;
    this.#state = this.#life === 'open' ? this.#dialogue.state : this.#life;
    if (this.#line) this.#line.isPressing = AWAITING.has(this.#state);
    if (this.#state !== before) this.#emit('state', { state: this.#state, before });
  }

  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

function abandoned() {
  return new ParleyError('session_over', 'The conversation was ended before it began.');
}
