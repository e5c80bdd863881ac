// A conversation over one socket after the other: when one is lost, the next goes on with it.

import { ParleyError } from './errors.js';
import { TAKEN_OVER } from './wire.js';

const NEW = 'new'; // what stands for the token when a conversation begins
// The last one again and again: a server that is there again is noticed while the user still waits,
// and the conversation is kept for a minute only.
const BACKOFF_MS = [300, 1000, 1500];
// A token whose answer was lost lets in again after two seconds: until then a refusal proves nothing.
const DOUBTFUL_MS = 2100;
const FORGOTTEN =
  'The server no longer knows this conversation: it was restarted, it seems. What was said stays here to be read; the next conversation begins anew.';
// Events kept for the next socket: what a user says or does while there is none.
const MOST_KEPT = 100;
// Closes by which the server has ended the conversation for this page; RFC 6455, 7.4.1.
const FINAL = new Set([1000, 1001, 1008, TAKEN_OVER]);
const HOPELESS = new Set(['unauthorised']);

/**
 * Handlers: `onEvent(event)`; `onOpen(greeting, isResumed)` before the first event of each socket;
 * `onSettled(isReload)` once a resumed conversation has been told anew; `onLost({code,
 * message})`;
 * `onWaiting({attempt, inMs})` before each attempt; `onOver({code, message, error})` once, when the
 * conversation has ended and was not closed here: code as a WebSocket's, error a ParleyError or null.
 */
export class Reconnecting {
  /** For the next page: null where the server does not offer it. */
  resumeToken = null;
  #dial;
  #handlers;
  #clock;
  #connection = null;
  #withinMs = 0;
  #kept = [];
  #timer = null;
  #isWaiting = false;
  #loss = null; // {atMs, attempt, refusedAtMs} while there is no socket
  #isOver = false;
  #attempt = new AbortController(); // of the dialling that is under way
  #isHurried = false; // the next attempt has no time to lose
  #goOnline = () => this.#comeOnline();

  /**
   * @param {(resume: string, signal: AbortSignal) => Promise<import('./connection.js').Connection>} dial
   * @param {object} handlers
   * @param {() => number} clock monotone milliseconds
   */
  constructor(dial, handlers, clock) {
    this.#dial = dial;
    this.#handlers = handlers;
    this.#clock = clock;
  }

  get networkMs() {
    return this.#connection?.networkMs ?? 0;
  }

  get isOpen() {
    return this.#connection !== null;
  }

  /**
   * Open a new conversation, or go on with an earlier one.
   * @param {string | null} token of the earlier one
   * @returns {Promise<boolean>} whether the earlier one goes on; false: a new one has begun
   * @throws {ParleyError}
   */
  async connect(token) {
    if (token) {
      try {
        this.#adopt(await this.#dial(token, this.#attempt.signal), true, true);
        return true;
      } catch (error) {
        if (error.code !== 'session_over' || this.#isOver) throw error;
      }
    }
    this.#adopt(await this.#dial(NEW, this.#attempt.signal), false, true);
    return false;
  }

  /** Whether the user waits for something to come. */
  set isPressing(isPressing) {
    if (this.#connection) this.#connection.isPressing = isPressing;
  }

  /**
   * @param {object} event of the client
   * @param {boolean} isKept whether it still means something on the next socket
   * @returns {boolean} whether it leaves, now or then
   */
  send(event, isKept = false) {
    if (this.#connection?.send(event)) return true;
    if (!isKept || this.#isOver || this.#kept.length === MOST_KEPT) return false;
    this.#kept.push(event);
    return true;
  }

  /** End the conversation for good. No handler is called any more. */
  close() {
    this.#release();
    this.#connection?.close();
    this.#connection = null;
  }

  #release() {
    this.#isOver = true;
    this.#attempt.abort();
    clearTimeout(this.#timer);
    globalThis.removeEventListener?.('online', this.#goOnline);
    this.#kept = [];
    this.#loss = null;
    this.#isWaiting = false;
  }

  #adopt(connection, isResumed, isFirst) {
    if (this.#isOver) {
      connection.close();
      throw new ParleyError('session_over', 'The conversation was ended.');
    }
    const { greeting } = connection;
    const { token = null, within_ms: withinMs = 0 } = greeting.parley?.resume ?? {};
    this.resumeToken = token;
    this.#withinMs = withinMs;
    this.#connection = connection;
    this.#loss = null;
    this.#isHurried = false;
    this.#handlers.onOpen(greeting, isResumed);
    connection.start({
      onEvent: (event) => this.#handlers.onEvent(event),
      onClosed: (closing) => this.#lose(closing),
      onSettled: () => isResumed && this.#handlers.onSettled(isFirst),
    });
    for (const event of this.#kept.splice(0)) this.send(event, true);
  }

  #lose({ code, message }) {
    this.#connection = null;
    if (FINAL.has(code) || this.resumeToken === null) {
      this.#end({ code, message, error: null });
      return;
    }
    globalThis.addEventListener?.('online', this.#goOnline);
    this.#loss = { atMs: this.#clock(), attempt: 0, refusedAtMs: null };
    this.#handlers.onLost({ code, message });
    if (this.#loss) this.#wait();
  }

  #wait() {
    const { atMs, attempt, refusedAtMs } = this.#loss;
    const nowMs = this.#clock();
    const leftMs = atMs + this.#withinMs - nowMs;
    if (leftMs <= 0) {
      this.#endUnresumed('The connection was lost for too long: the conversation is over.');
      return;
    }
    const backoffMs =
      refusedAtMs === null
        ? BACKOFF_MS[Math.min(attempt, BACKOFF_MS.length - 1)]
        : Math.max(0, refusedAtMs + DOUBTFUL_MS - nowMs);
    const inMs = this.#isHurried ? 0 : Math.min(leftMs, backoffMs);
    this.#isHurried = false;
    this.#loss.attempt += 1;
    this.#isWaiting = true;
    this.#timer = setTimeout(() => this.#tryAgain(), inMs);
    this.#handlers.onWaiting({ attempt: this.#loss.attempt, inMs });
  }

  // The network is back: whatever was begun before may hang until it times out.
  #comeOnline() {
    if (this.#isWaiting) {
      this.#tryAgain();
    } else {
      this.#isHurried = true;
      this.#attempt.abort();
    }
  }

  async #tryAgain() {
    clearTimeout(this.#timer);
    this.#isWaiting = false;
    this.#attempt = new AbortController();
    const { signal } = this.#attempt;
    let connection;
    try {
      connection = await this.#dial(this.resumeToken, signal);
    } catch (error) {
      if (this.#loss && signal.aborted) this.#wait();
      else if (this.#loss) this.#weigh(error);
      return;
    }
    if (this.#isOver) {
      connection.close();
      return;
    }
    globalThis.removeEventListener?.('online', this.#goOnline);
    this.#adopt(connection, true, false);
  }

  #weigh(error) {
    const nowMs = this.#clock();
    if (error.code === 'session_over') {
      this.#loss.refusedAtMs ??= nowMs;
      if (nowMs - this.#loss.refusedAtMs >= DOUBTFUL_MS) {
        this.#endUnresumed(FORGOTTEN);
        return;
      }
    }
    if (HOPELESS.has(error.code)) this.#end({ code: 1006, message: error.message, error });
    else this.#wait();
  }

  #endUnresumed(message) {
    this.#end({ code: 1006, message, error: new ParleyError('session_over', message) });
  }

  #end(ending) {
    this.#release();
    this.#handlers.onOver(ending);
  }
}
