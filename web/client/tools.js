// Function calls: the page's own functions are called, and answered with what they give.

// More than a language model reads at once. The server refuses an item of 7 MiB, and closes the socket
// that brings 32.
const MOST_OUTPUT_BYTES = 256 * 1024;
const UNKNOWN_OUTCOME =
  'The result of this call is not known: the page was loaded anew before it was there.';

/**
 * @typedef {object} Tool
 * @property {string} description for the language model
 * @property {object} parameters JSON schema of the arguments
 * @property {(args: object) => any} call may return a promise; what it throws is told to the model,
 *     and so is that its result, as text, has more than 256 KiB
 */

/** Runs the calls of tools that it knows and leaves all others to the page. */
export class Tools {
  #tools;
  #send;
  #onChanged;
  #ask;
  #seen = new Set(); // call ids that were run, or are not to be
  #open = new Map(); // response id -> {calls: Set of ids, outputs: ids of items, isDone}
  #newId;

  /**
   * @param {Record<string, Tool>} tools by name
   * @param {(event: object) => void} send
   * @param {(item: import('./item.js').Item) => void} onChanged a call was made, or has its outcome
   * @param {(ids: string[]) => void} ask for a response that knows these items
   * @param {() => string} newId of an item
   */
  constructor({ tools, send, onChanged, ask, newId }) {
    this.#tools = new Map(Object.entries(tools));
    this.#send = send;
    this.#onChanged = onChanged;
    this.#ask = ask;
    this.#newId = newId;
  }

  /** As `session.tools` wants them. */
  describe() {
    return [...this.#tools].map(([name, { description, parameters }]) => ({
      type: 'function',
      name,
      description,
      parameters,
    }));
  }

  /**
   * @param {object} event of the server
   * @param {(id: string) => import('./item.js').Item | null} find
   */
  take(event, find) {
    switch (event.type) {
      case 'response.output_item.done':
        if (event.item.type === 'function_call' && event.item.status === 'completed') {
          const item = find(event.item.id);
          if (item?.call) this.#begin(item, event.response_id);
        }
        break;
      case 'response.done':
        this.#finishResponse(event.response.id);
        break;
      case 'conversation.item.added':
        // The page has answered a call that is its own.
        if (event.item.type === 'function_call_output') this.#settle(event.item.call_id);
        break;
      default:
    }
  }

  /**
   * After a resumed connection: calls that were made and not answered.
   * @param {import('./item.js').Item[]} items
   * @param {boolean} isReload whether another page may have run them; they are not run again then
   */
  recover(items, isReload) {
    for (const item of items) {
      const isOpen = item.call?.status === 'running' && this.#tools.has(item.call.name);
      if (!isOpen || this.#seen.has(item.call.id)) continue;
      if (isReload) {
        this.#seen.add(item.call.id);
        this.#ask([this.#answer(item, UNKNOWN_OUTCOME, 'failed')]);
      } else {
        this.#begin(item, item.call.id); // its response is over
        this.#finishResponse(item.call.id);
      }
    }
  }

  /** The socket is lost: no response of it goes on, though what it called does. */
  lose() {
    for (const id of [...this.#open.keys()]) this.#finishResponse(id);
  }

  #begin(item, responseId) {
    const { id, name } = item.call;
    if (this.#seen.has(id)) return;
    this.#seen.add(id);
    if (!this.#open.has(responseId)) {
      this.#open.set(responseId, { calls: new Set(), outputs: [], isDone: false });
    }
    this.#open.get(responseId).calls.add(id);
    this.#onChanged(item);
    if (this.#tools.has(name)) this.#run(item, responseId);
  }

  async #run(item, responseId) {
    let output;
    let status = 'done';
    try {
      const tool = this.#tools.get(item.call.name);
      output = boundedText(await tool.call(JSON.parse(item.call.arguments || '{}')));
    } catch (error) {
      status = 'failed';
      output = `Error: ${error?.message ?? error}`;
    }
    const response = this.#open.get(responseId);
    if (!response?.calls.has(item.call.id)) return; // the page has answered it by itself
    response.outputs.push(this.#answer(item, output, status));
    this.#settle(item.call.id);
  }

  #answer(item, output, status) {
    Object.assign(item.call, { output, status });
    const id = this.#newId();
    const wire = { id, type: 'function_call_output', call_id: item.call.id, output };
    this.#send({ type: 'conversation.item.create', item: wire });
    this.#onChanged(item);
    return id;
  }

  #settle(callId) {
    for (const [id, { calls }] of this.#open) if (calls.delete(callId)) this.#askIfComplete(id);
  }

  #finishResponse(id) {
    const response = this.#open.get(id);
    if (!response) return;
    response.isDone = true;
    this.#askIfComplete(id);
  }

  // One answer to all calls of a response, and none to calls that are the page's own.
  #askIfComplete(id) {
    const { calls, outputs, isDone } = this.#open.get(id);
    if (!isDone || calls.size > 0) return;
    this.#open.delete(id);
    if (outputs.length > 0) this.#ask(outputs);
  }
}

function boundedText(result) {
  const text = typeof result === 'string' ? result : (JSON.stringify(result ?? null) ?? 'null');
  // Counted as letters first: those that are too many need not be encoded.
  const isLong = text.length > MOST_OUTPUT_BYTES;
  if (isLong || new TextEncoder().encode(text).length > MOST_OUTPUT_BYTES) {
    const limit = MOST_OUTPUT_BYTES / 1024;
    throw new Error(
      `the result is too long to be sent: ${text.length} characters, of at most ${limit} KiB. Ask for less of it.`,
    );
  }
  return text;
}
