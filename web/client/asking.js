// When to ask for a response: one at a time, and none that the server makes by itself anyway.

const MARK = 'ask_'; // begins the event ids of requests, by which their errors are known
const TAKEN = 'conversation_already_has_active_response';

/**
 * Sends `response.create`: at once with `now()`, with `when(ids)` as soon as nothing is being
 * answered and nobody speaks. A response that the server begins by itself meanwhile counts as the
 * answer, if it knows all items of these ids.
 */
export class Asking {
  #send;
  #count = 0;
  #active = null; // the id of the default conversation's response
  #isWanted = false;
  #unknown = new Set(); // ids of items that the answer must know and the server has not told
  #isUserTalking = false;

  /** @param {(event: object) => void} send */
  constructor(send) {
    this.#send = send;
  }

  /** The id of the response that is being made, or null. */
  get active() {
    return this.#active;
  }

  now() {
    this.#isWanted = false;
    this.#count += 1;
    this.#send({ type: 'response.create', event_id: `${MARK}${this.#count}` });
  }

  /** @param {string[]} ids of items that the answer must know */
  when(ids) {
    this.#isWanted = true;
    for (const id of ids) this.#unknown.add(id);
    this.#flush();
  }

  /** @returns {boolean} whether the event is an error that is dealt with here */
  take(event) {
    switch (event.type) {
      case 'response.created':
        if (event.response.conversation_id !== null) this.#begin(event.response.id);
        break;
      case 'response.done':
        if (event.response.id === this.#active) this.#active = null;
        this.#flush();
        break;
      case 'conversation.item.added':
        this.#unknown.delete(event.item.id);
        break;
      case 'input_audio_buffer.speech_started':
        this.#isUserTalking = true; // what they say will be answered, and all else with it
        break;
      case 'parley.state':
        this.#isUserTalking &&= event.state !== 'listening' && event.state !== 'speaking';
        this.#flush();
        break;
      case 'error':
        return this.#isRefused(event.error);
      default:
    }
    return false;
  }

  /** The socket is lost, and with it every response; the server answers what it owes by itself. */
  lose() {
    this.#active = null;
    this.#isUserTalking = false;
  }

  #begin(id) {
    this.#active = id;
    this.#isUserTalking = false;
    if (this.#unknown.size === 0) this.#isWanted = false;
  }

  #flush() {
    if (this.#isWanted && this.#active === null && !this.#isUserTalking) this.now();
  }

  // Another response began while ours was on its way: ask again when that one is done.
  #isRefused(error) {
    if (error.code !== TAKEN || !String(error.event_id ?? '').startsWith(MARK)) return false;
    this.#isWanted = true;
    this.#flush();
    return true;
  }
}
