// The conversation as the server tells it: items in the order of the wire, with what of each has
// been heard. Pure: events and played times in, changed items out.

import { contentText, newCall, newItem } from './item.js';
import { Ordering } from './ordering.js';
import { audioMs } from './wire.js';

// Of an item whose audio ends: a codec's padding and the rounding of frames lie within.
const END_SLACK_MS = 30;
// A recogniser on a busy machine has answered by then; a turn without an answer was none.
const DECISION_LIMIT_MS = 12000;
const TRANSCRIPTION = 'conversation.item.input_audio_transcription';
const NOT_UNDERSTOOD = '(not understood)';

/**
 * `onItem(item, isNew)`, `onRemoved(id)` and `onHeard(item)` tell of changes; `onFailed(error)` of
 * speech that could not be recognised, in the server's words. `now()` gives epoch milliseconds.
 */
export class Conversation {
  /** Of the session's output audio. */
  outputFormat = { type: 'audio/pcm', rate: 24000 };
  #order;
  #responses = new Map(); // item id -> response id
  #onHeard;
  #onFailed;
  #now;

  constructor({ onItem, onRemoved, onHeard, onFailed = () => {}, now = Date.now }) {
    this.#order = new Ordering({ onItem, onRemoved });
    this.#onHeard = onHeard;
    this.#onFailed = onFailed;
    this.#now = now;
  }

  /** The items that are shown, in order. */
  get items() {
    return this.#order.items;
  }

  /** The item of this id, or null. */
  get(id) {
    return this.#order.find(id)?.item ?? null;
  }

  /** Take any server event; those that do not concern items change nothing. */
  take(event) {
    const { item_id: id } = event;
    switch (event.type) {
      case 'input_audio_buffer.speech_started':
        this.#dropUndecided();
        this.#beginTurn(id);
        break;
      case 'input_audio_buffer.speech_stopped':
        this.#order.change(id, (entry) => {
          entry.stoppedAt = this.#now();
        });
        break;
      case 'input_audio_buffer.committed':
        this.#beginTurn(id).isCommitted = true;
        this.#order.place(id, event.previous_item_id);
        break;
      case 'parley.transcript':
        this.#glimpse(id, event.transcript);
        break;
      case 'parley.state':
        if (event.state === 'listening' || event.state === 'speaking') this.#dropUndecided();
        break;
      case `${TRANSCRIPTION}.delta`:
        this.#transcribe(id, (entry) => (entry.final ?? '') + event.delta, true);
        break;
      case `${TRANSCRIPTION}.completed`:
        this.#transcribe(id, () => event.transcript, false);
        break;
      case `${TRANSCRIPTION}.failed`:
        this.#transcribe(id, () => NOT_UNDERSTOOD, false);
        this.#onFailed(event.error);
        break;
      case 'conversation.item.added':
        this.#add(event.item, event.previous_item_id);
        break;
      case 'conversation.item.done':
        this.#complete(event.item);
        break;
      case 'conversation.item.retrieved':
        this.#correct(event.item);
        break;
      case 'conversation.item.deleted':
        this.#order.remove(id);
        break;
      default:
        this.#takeOfResponse(event);
    }
  }

  // ---- what is heard -------------------------------------------------------------------------

  /**
   * What the loudspeaker has played of an item.
   * @param {number} playedMs of its audio, as heard
   * @param {boolean} isOver whether no more of it will be played, though nothing cut it off
   */
  played(id, playedMs, isOver = false) {
    const entry = this.#order.find(id);
    if (!entry?.marks || entry.item.cut !== null) return;
    const { item, marks } = entry;
    const isWhole = isOver || playedMs >= entry.receivedMs - END_SLACK_MS;
    let heard = entry.hasAllAudio && isWhole ? item.text.length : 0;
    for (const mark of marks) if (mark.ms < playedMs) heard = Math.max(heard, mark.characters);
    if (heard <= item.heard) return;
    item.heard = heard;
    this.#onHeard(item);
  }

  /** How much audio of an item has come, in ms, and whether that is all. */
  received(id) {
    const { receivedMs = 0, hasAllAudio = false } = this.#order.find(id) ?? {};
    return { receivedMs, hasAllAudio };
  }

  /** Ids of the spoken items that were not heard out, nor cut off. */
  unheard() {
    const isUnheard = ({ marks, receivedMs, hasAllAudio, item }) =>
      marks &&
      item.cut === null &&
      (item.heard < item.text.length || (receivedMs > 0 && !hasAllAudio));
    return this.#order.entries.filter(isUnheard).map(({ id }) => id);
  }

  /**
   * Cut an item off where the listener stopped hearing it.
   * @returns {boolean} false: it was heard out already
   */
  cut(id, playedMs) {
    this.played(id, playedMs);
    if (!this.unheard().includes(id)) return false;
    this.#order.change(id, ({ item }) => {
      item.cut = item.heard;
    });
    return true;
  }

  // ---- the user ------------------------------------------------------------------------------

  /** The socket is lost: a turn that was being spoken must be said again. */
  lose() {
    this.#removeWhere(isUndecided);
    for (const entry of this.#order.entries) {
      if (!entry.marks || !entry.item.isInterim) continue;
      entry.item.isInterim = false; // what follows comes as another item
      this.#showIfWords(entry, false);
    }
  }

  /** Drop a turn that ended long ago and of which nothing more has been told. */
  dropLate() {
    const limit = this.#now() - DECISION_LIMIT_MS;
    this.#removeWhere((entry) => isUndecided(entry) && entry.stoppedAt <= limit);
  }

  // A turn in which no word was heard is dropped: nothing is told of it after its speech_stopped.
  #dropUndecided() {
    this.#removeWhere((entry) => isUndecided(entry) && entry.stoppedAt !== undefined);
  }

  #removeWhere(isOut) {
    for (const entry of this.#order.entries) if (isOut(entry)) this.#order.remove(entry.id);
  }

  #beginTurn(id) {
    const item = newItem(id, 'user', 'message', this.#now());
    return this.#order.find(id) ?? this.#order.insert({ id, item, isSpoken: true });
  }

  #glimpse(id, text) {
    this.#order.change(id, (entry) => {
      if (entry.final === undefined) writeUser(entry.item, text, true);
    });
  }

  #transcribe(id, textOf, isInterim) {
    const entry = this.#order.find(id);
    if (!entry?.item) return;
    entry.final = textOf(entry);
    writeUser(entry.item, entry.final, isInterim);
    this.#showIfWords(entry, isInterim);
  }

  // ---- items ---------------------------------------------------------------------------------

  #add(wire, previousId) {
    const entry = this.#order.find(wire.id) ?? this.#order.insert(this.#entryOf(wire));
    entry.isCommitted = true;
    this.#order.place(wire.id, previousId);
    this.#attachResponse(entry);
    // What comes anew after a loss is told as it stands in history; what begins is in progress.
    if (wire.status !== 'in_progress') this.#fill(entry, wire);
  }

  #entryOf(wire) {
    const { id, role } = wire;
    if (wire.type === 'function_call_output') return { id, item: null };
    if (wire.type === 'function_call') return { id, item: newCall(wire, this.#now()) };
    const item = newItem(id, role, 'message', this.#now());
    // marks: behind so many ms of audio, so many characters of the text have begun.
    const sound = { marks: [], receivedMs: 0, hasAllAudio: false };
    return { id, item, ...(role === 'assistant' ? sound : null) };
  }

  #fill(entry, wire) {
    const { item } = entry;
    if (wire.type === 'function_call_output') return this.#answer(wire);
    if (wire.type === 'function_call') return this.#endCall(entry, wire);
    const text = contentText(wire);
    if (text === null) return undefined; // speech that is still being recognised
    if (item.role === 'assistant') {
      entry.hasAllAudio = true;
      recall(item, text, wire.status === 'incomplete');
    } else {
      entry.final = text;
      item.isTyped = item.role === 'user' && wire.content.some(({ type }) => type === 'input_text');
      writeUser(item, text, false);
    }
    return this.#showIfWords(entry, false);
  }

  // History after a truncation: what we know beyond it was not heard.
  #correct(wire) {
    const entry = this.#order.find(wire.id);
    if (!entry?.marks || entry.item.cut === null) return;
    recall(entry.item, contentText(wire) ?? '', true);
    this.#showIfWords(entry, false);
  }

  #complete(wire) {
    const entry = this.#order.find(wire.id);
    if (wire.type === 'function_call' && entry) this.#endCall(entry, wire);
    if (!entry?.marks) return;
    entry.item.isInterim = false;
    this.#showIfWords(entry, wire.status !== 'incomplete');
  }

  #endCall(entry, wire) {
    const { call } = entry.item;
    call.name = wire.name || call.name;
    call.arguments = wire.arguments || call.arguments;
    if (call.status === 'writing') call.status = wire.status === 'incomplete' ? 'failed' : 'running';
    this.#order.show(entry);
  }

  #answer(wire) {
    const isAnswered = ({ item }) => item?.call?.id === wire.call_id;
    this.#order.change(this.#order.entries.find(isAnswered)?.id, ({ item: { call } }) => {
      call.output = wire.output;
      if (call.status !== 'failed') call.status = 'done';
    });
  }

  // An item that stays without a word is none to look at.
  #showIfWords(entry, isGrowing) {
    if (entry.item.text || isGrowing) this.#order.show(entry);
    else this.#order.hide(entry);
  }

  // ---- responses -----------------------------------------------------------------------------

  #takeOfResponse(event) {
    const { item_id: id } = event;
    switch (event.type) {
      case 'response.output_item.added':
        this.#responses.set(event.item.id, event.response_id);
        break;
      case 'response.output_item.done':
        this.#complete(event.item);
        break;
      case 'response.output_audio.delta':
        this.#receive(id, audioMs(event.delta, this.outputFormat), false);
        break;
      case 'response.output_audio.done':
        this.#receive(id, 0, true);
        break;
      case 'response.output_audio_transcript.delta':
        this.#write(id, event.delta, false);
        break;
      case 'response.output_text.delta':
        this.#write(id, event.delta, true);
        break;
      case 'response.function_call_arguments.delta':
        this.#order.change(id, ({ item: { call } }) => {
          call.arguments += event.delta;
        });
        break;
      case 'response.function_call_arguments.done':
        this.#order.change(id, ({ item: { call } }) => {
          Object.assign(call, { name: event.name, arguments: event.arguments });
        });
        break;
      default:
    }
  }

  #receive(id, ms, isAll) {
    const entry = this.#order.find(id);
    if (!entry?.marks) return;
    entry.receivedMs += ms;
    entry.hasAllAudio ||= isAll;
  }

  #write(id, delta, isSilent) {
    this.#order.change(id, ({ item, marks, receivedMs }) => {
      item.text += delta;
      item.isWaiting = !item.text;
      // The words of a delta begin with the next frame of audio.
      if (isSilent) item.heard = item.text.length;
      else marks.push({ characters: item.text.length, ms: receivedMs });
    });
  }

  #attachResponse({ id, item }) {
    if (item) item.responseId ??= this.#responses.get(id) ?? null;
  }
}

function isUndecided(entry) {
  return Boolean(entry.isSpoken) && !entry.isCommitted;
}

function writeUser(item, text, isInterim) {
  item.text = text.trim();
  item.heard = item.text.length;
  item.isWaiting = isInterim && !item.text;
  item.isInterim = isInterim;
}

// An assistant's item as history has it.
function recall(item, text, isBroken) {
  if (!item.text.startsWith(text) || !item.text) item.text = text;
  const isLonger = item.text.slice(text.length).trim() !== '';
  item.cut = isBroken || isLonger ? text.length : null;
  item.heard = text.length;
  item.isWaiting = item.isInterim = false;
}
