// Where the time of each turn went: the server's ledger and what the client has seen of it. Pure.

/**
 * @typedef {object} Turn
 * @property {string} responseId
 * @property {string | null} userItemId the message that is answered
 * @property {string} status of the response
 * @property {number | null} totalMs from the user's last sound to the first sound heard
 * @property {{name: string, ms: number}[]} parts in order of showing
 * @property {boolean} isMeasured whether the answer was heard, so that the total is one
 */

const NAMES = ['end of turn', 'transcript', 'first token', 'first audio', 'network', 'buffer'];

// Each station of the ledger closes the gap to the one before it, which belongs to this part.
const PART_OF_STATION = {
  transcript: 'transcript',
  turn_end: 'end of turn',
  committed: 'end of turn',
  response_created: 'end of turn',
  first_token: 'first token',
  first_text_to_voice: 'first audio',
  first_audio_made: 'first audio',
  first_audio_sent: 'first audio',
};

/**
 * The parts of one turn.
 * @param {Record<string, number>} ledger `parley.latency_ms` of `response.done`
 * @param {number} networkMs one way
 * @param {number} bufferMs from the arrival of the first delta to its first sample heard
 * @returns {{name: string, ms: number}[]} all six, also those of 0
 */
export function partsOf(ledger, networkMs, bufferMs) {
  const parts = new Map(NAMES.map((name) => [name, 0]));
  let before = 0;
  // What was worked on ahead changes the order of the stations: each counts from the one before.
  for (const [station, at] of Object.entries(ledger).sort(([, a], [, b]) => a - b)) {
    const name = PART_OF_STATION[station];
    if (name === undefined || at <= before) continue;
    parts.set(name, parts.get(name) + at - before);
    before = at;
  }
  parts.set('network', Math.round(networkMs));
  parts.set('buffer', Math.round(bufferMs));
  return [...parts].map(([name, ms]) => ({ name, ms }));
}

/** Collects the turns of a conversation. Times are monotone milliseconds of one clock. */
export class Latency {
  /** @type {Turn[]} oldest first */
  turns = [];
  #open = new Map(); // response id -> {turn, itemIds, arrivedMs, heardMs, ledger}
  #userItemId = null; // not answered yet
  #onTurn;
  #networkMs;

  /**
   * @param {(turn: Turn) => void} onTurn a turn is new or has changed
   * @param {() => number} networkMs one way, at present
   */
  constructor(onTurn, networkMs) {
    this.#onTurn = onTurn;
    this.#networkMs = networkMs;
  }

  /** Take any server event, with the time of its arrival. */
  take(event, atMs) {
    switch (event.type) {
      case 'conversation.item.added':
        if (event.item.role === 'user') this.#userItemId = event.item.id;
        break;
      case 'response.created':
        if (event.response.conversation_id !== null) this.#begin(event.response);
        break;
      case 'response.output_audio.delta':
        this.#note(event.response_id, (record) => {
          record.itemId ??= event.item_id;
          record.arrivedMs ??= atMs;
        });
        break;
      case 'response.done':
        this.#note(event.response.id, (record) => {
          record.turn.status = event.response.status;
          record.ledger = event.parley?.latency_ms ?? {};
          this.#complete(record);
        });
        break;
      default:
    }
  }

  /** The first sample of an item is heard. */
  started(itemId, atMs) {
    for (const record of this.#open.values()) {
      if (record.itemId !== itemId || record.heardMs !== null) continue;
      record.heardMs = atMs;
      this.#complete(record);
    }
  }

  /** The socket is lost, and with it every response of which not all was told. */
  lose() {
    for (const { turn } of this.#open.values()) {
      if (turn.status !== 'in_progress') continue;
      turn.status = 'cancelled';
      this.#onTurn(turn);
    }
    this.#open.clear();
  }

  #begin({ id, status }) {
    const turn = {
      responseId: id,
      userItemId: this.#userItemId,
      status,
      totalMs: null,
      parts: [],
      isMeasured: false,
    };
    this.#userItemId = null;
    this.turns.push(turn);
    this.#open.set(id, { turn, itemId: null, arrivedMs: null, heardMs: null, ledger: null });
    this.#onTurn(turn);
  }

  #note(id, change) {
    const record = this.#open.get(id);
    if (record) change(record);
  }

  // Complete when the ledger has come and the first sound was heard, whichever is the later.
  #complete(record) {
    const { turn, arrivedMs, heardMs, ledger } = record;
    if (ledger === null) return;
    turn.isMeasured = heardMs !== null;
    turn.parts = partsOf(
      ledger,
      arrivedMs === null ? 0 : this.#networkMs(),
      turn.isMeasured ? Math.max(0, heardMs - arrivedMs) : 0,
    );
    if (turn.isMeasured) turn.totalMs = turn.parts.reduce((sum, { ms }) => sum + ms, 0);
    if (turn.isMeasured || arrivedMs === null) this.#open.delete(turn.responseId);
    this.#onTurn(turn);
  }
}
