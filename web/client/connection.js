// One WebSocket from its opening to its end: events both ways, a pulse, and why it was refused.

import { ParleyError } from './errors.js';
import { explainClose, pageAddress, subprotocols } from './wire.js';

const OPEN_TIMEOUT_MS = 10000; // longer than any handshake; a resumed session comes at once too
// The pulse: how often a ping leaves, and for how long its answer, or any other sign, is awaited.
const CALM = { pingMs: 5000, answerMs: 7000 }; // a dead line is noticed within 12 s
// While an answer is awaited or heard: silence in mid-sentence costs patience sooner.
const PRESSING = { pingMs: 2000, answerMs: 4000 };
const KEPT_ROUND_TRIPS = 12; // a minute's
const LOST = 1006; // what a browser says of a socket that has ended without a word
const NORMAL = 1000;
const ABANDONED = 4000; // a close of ours after which we come back
const FULL = 1013;
const PING_ID = 'ping_';

/** An open conversation: `session.created` has come. What follows waits until `start()`. */
export class Connection {
  /** The event `session.created`. */
  greeting;
  #socket;
  #clock;
  #handlers = null;
  #early = []; // what came before there was anybody to take it
  #pulse = CALM;
  #pinging = null; // the timers
  #awaiting = null;
  #pingCount = 0;
  #pingedAtMs = -Infinity;
  #pings = new Map(); // id -> when it was sent
  #roundTripsMs = [];

  /**
   * Open one. Throws ParleyError: unauthorised, full, starting, unreachable, refused, session_over.
   * @param {object} options
   * @param {string} options.address of the WebSocket
   * @param {string | null} options.key
   * @param {boolean} options.isResuming whether the address carries a token
   * @param {AbortSignal} options.signal gives up: the promise is rejected with session_over
   */
  static async open({ address, key, isResuming = false, signal, Socket, clock, fetch }) {
    let socket;
    try {
      socket = new Socket(address, subprotocols(key));
    } catch {
      throw key
        ? new ParleyError('unauthorised', 'The key cannot be right: it holds signs that no key has.')
        : new ParleyError('refused', `This is no address of a server: ${address}`);
    }
    const greeting = await greet(socket, signal, clock);
    if (greeting.connection) return greeting.connection;
    if (signal.aborted) throw new ParleyError('session_over', 'The conversation was ended.');
    if (greeting.error) throw refusal(greeting.error, greeting.code);
    if (greeting.wasOpen) {
      const code = greeting.code === FULL ? 'full' : 'refused';
      throw new ParleyError(code, explainClose(greeting.code, greeting.reason));
    }
    throw await explainRefusal({ address, key, isResuming, fetch });
  }

  constructor(socket, greeting, clock) {
    this.#socket = socket;
    this.#clock = clock;
    this.greeting = greeting;
    socket.onmessage = ({ data }) => this.#receive(data);
    socket.onclose = ({ code, reason }) => this.#end(code, reason);
  }

  /**
   * Handlers: `onEvent(event)` in order of arrival; `onSettled()` at the first answer, when all that
   * the server told at the beginning has come; `onClosed({code, message})` once at the end. None is
   * called after it, or after `close()`.
   */
  start(handlers) {
    this.#handlers = handlers;
    for (const tell of this.#early.splice(0)) if (this.#handlers) tell();
    if (!this.#socket) return; // it has ended already
    this.#beat();
  }

  /** Whether the user waits for something to come: then a dead line is noticed sooner. */
  set isPressing(isPressing) {
    const pulse = isPressing ? PRESSING : CALM;
    if (pulse === this.#pulse) return;
    this.#pulse = pulse;
    if (this.#pinging === null) return;
    clearInterval(this.#pinging);
    this.#beat();
  }

  /** Half the median round trip of the last minute (of two the shorter) in ms, 0 before the first. */
  get networkMs() {
    if (!this.#roundTripsMs.length) return 0;
    const sorted = [...this.#roundTripsMs].sort((a, b) => a - b);
    return sorted[(sorted.length - 1) >> 1] / 2;
  }

  /** Whether it left; false when the socket is closing. */
  send(event) {
    if (this.#socket?.readyState !== 1) return false;
    this.#socket.send(JSON.stringify(event));
    return true;
  }

  /** The conversation is over: neither side comes back to it. */
  close() {
    this.#release()?.close(NORMAL);
    this.#handlers = null;
    this.#early = [];
  }

  #receive(data) {
    clearTimeout(this.#awaiting);
    this.#awaiting = null;
    const event = parse(data);
    if (event === null) return;
    if (event.type === 'parley.pong') this.#measure(event.id);
    else if (!isAboutPing(event)) this.#tell(() => this.#handlers.onEvent(event));
  }

  #tell(tell) {
    if (this.#handlers) tell();
    else this.#early.push(tell);
  }

  #beat() {
    const { pingMs } = this.#pulse;
    this.#pinging = setInterval(() => this.#ping(), pingMs);
    if (this.#clock() - this.#pingedAtMs >= pingMs) this.#ping();
  }

  #ping() {
    this.#pingCount += 1;
    const id = `${PING_ID}${this.#pingCount}`;
    this.#pingedAtMs = this.#clock();
    this.#pings.set(id, this.#pingedAtMs);
    this.send({ type: 'parley.ping', id, event_id: id });
    // Counted from a ping, for the timers of a page in the background may fire once in a minute.
    this.#awaiting ??= setTimeout(() => this.#giveUp(), this.#pulse.answerMs);
  }

  #measure(id) {
    const sentMs = this.#pings.get(id);
    if (sentMs === undefined) return;
    this.#pings.clear(); // answers come in order: an older one will not come any more
    this.#roundTripsMs.push(this.#clock() - sentMs);
    if (this.#roundTripsMs.length === 1) this.#handlers.onSettled();
    if (this.#roundTripsMs.length > KEPT_ROUND_TRIPS) this.#roundTripsMs.shift();
  }

  #giveUp() {
    const socket = this.#socket;
    this.#end(LOST, '');
    socket.close(ABANDONED);
  }

  #end(code, reason) {
    const closing = { code, message: explainClose(code, reason) };
    if (!this.#release()) return;
    this.#tell(() => {
      const { onClosed } = this.#handlers;
      this.#handlers = null;
      onClosed(closing);
    });
  }

  #release() {
    const socket = this.#socket;
    this.#socket = null;
    clearInterval(this.#pinging);
    clearTimeout(this.#awaiting);
    this.#pinging = null;
    if (socket) socket.onmessage = socket.onclose = null;
    return socket;
  }
}

// Settles with {connection} once the session has begun, or with how the socket ended before it did.
function greet(socket, signal, clock) {
  return new Promise((resolve) => {
    let wasOpen = false;
    let error = null;
    const settle = (result) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abandon);
      socket.onopen = null;
      if (!result.connection) socket.onmessage = socket.onclose = null;
      resolve(result);
    };
    const abandon = () => {
      settle({ code: LOST, reason: '', wasOpen: false, error: null });
      socket.close(NORMAL);
    };
    const timer = setTimeout(abandon, OPEN_TIMEOUT_MS);
    signal.addEventListener('abort', abandon);
    socket.onopen = () => {
      wasOpen = true;
    };
    socket.onmessage = ({ data }) => {
      const event = parse(data);
      // At once, for the next event may come in this very moment.
      if (event?.type === 'session.created') settle({ connection: new Connection(socket, event, clock) });
      else if (event?.type === 'error') error = event.error;
    };
    socket.onclose = ({ code, reason }) => settle({ code, reason, wasOpen, error });
    if (signal.aborted) abandon();
  });
}

function refusal(error, closeCode) {
  if (error.code === 'session_not_found') return new ParleyError('session_over', error.message);
  const isFull = error.code === 'too_many_sessions' || closeCode === FULL;
  return new ParleyError(isFull ? 'full' : 'refused', error.message);
}

// A browser hides from its page why a WebSocket was refused; plain requests can often say it.
async function explainRefusal({ address, key, isResuming, fetch }) {
  const ask = (path, headers = {}) =>
    fetch(pageAddress(address, path), {
      headers,
      cache: 'no-store',
      signal: AbortSignal.timeout(OPEN_TIMEOUT_MS),
    });
  try {
    const ready = await ask('/health/ready');
    if (ready.status === 503) return new ParleyError('starting', starting(await body(ready)));
    const models = await ask('/v1/models', key ? { Authorization: `Bearer ${key}` } : {});
    if (models.ok) return unexplained(isResuming);
    const said = (await body(models)).error?.message;
    if (models.status !== 401) {
      return new ParleyError('refused', said ?? `The server refuses the conversation (${models.status}).`);
    }
    const what = key ? 'The key is wrong.' : 'This server wants a key.';
    return new ParleyError('unauthorised', [what, said].filter(Boolean).join(' '));
  } catch {
    return new ParleyError('unreachable', unanswered(pageAddress(address, '/')));
  }
}

// To a page of another origin a browser shows no answer of a server that does not allow it.
function unanswered(server, { origin } = globalThis.location ?? {}) {
  const words = 'The server does not answer. Is it running, and its address right?';
  if (!origin || new URL(server).origin === origin) return words;
  return `${words} Does it allow pages of ${origin} (server.origins)?`;
}

function unexplained(isResuming) {
  return isResuming
    ? new ParleyError('session_over', 'The earlier conversation is over: its time to come back has passed.')
    : new ParleyError('refused', 'The server refused the conversation, and does not say why.');
}

function starting({ status, loading, failure }) {
  if (failure) return `The server cannot serve at present: ${failure}`;
  if (status === 'stopping') return 'The server is stopping. Try again in a moment.';
  return `The server is still starting${loading ? ` (${loading})` : ''}. Try again in a moment.`;
}

async function body(response) {
  try {
    return (await response.json()) ?? {};
  } catch {
    return {};
  }
}

// A server that does not know the question answers it with an error, which is an answer too.
function isAboutPing(event) {
  return event.type === 'error' && String(event.error?.event_id ?? '').startsWith(PING_ID);
}

function parse(data) {
  try {
    const event = JSON.parse(data);
    return typeof event?.type === 'string' ? event : null;
  } catch {
    return null;
  }
}
