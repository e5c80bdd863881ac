// The agent's voice at the listener's side: what of it is played, silenced, and told to the server
// as heard.

const ACKNOWLEDGE_MS = 250; // of played audio: a tenth of a sentence
const DRY_MS = 1000; // longer than any jitter that a buffer bridges
const UNASKED = 'voice_'; // begins the ids of events whose refusal is no news: it was heard out

export class Voice {
  #sound;
  #conversation;
  #send;
  #onChange;
  #responses = new Set(); // ids of those that are being made
  #dead = new Set(); // of these, those whose sound is not wanted any more
  #cutting = new Set(); // ids of items that are being silenced
  #playedMs = new Map(); // item id -> as the loudspeaker told last
  #acknowledged = { id: null, ms: 0 };
  #current = null; // id of the item that plays, or played last
  #count = 0;
  #interrupts = true; // whether speech ends a reply
  #dryTimer = null;

  /**
   * @param {object} sound what `Sound.open` gives
   * @param {import('./conversation.js').Conversation} conversation
   * @param {(event: object) => void} send
   * @param {() => void} onChange it plays, or does not any more
   */
  constructor(sound, conversation, send, onChange) {
    this.#sound = sound;
    this.#conversation = conversation;
    this.#send = send;
    this.#onChange = onChange;
  }

  /** Whether it sounds. */
  isPlaying = false;

  /** Whether it was silenced, and nothing to play has come since. */
  isSilenced = false;

  /** Whether more of an item has been awaited for so long that nobody would say that it speaks. */
  isDry = false;

  /** Whether it was stopped in the middle of an item, more of which will come. */
  get isCutShort() {
    return this.#current !== null && !this.#conversation.received(this.#current).hasAllAudio;
  }

  /** Take any server event, after the conversation has. Returns whether it is an error of no news. */
  take(event) {
    switch (event.type) {
      case 'session.created':
      case 'session.updated':
        // Without turn detection nothing is told of speech.
        this.#interrupts = event.session.audio?.input?.turn_detection?.interrupt_response ?? true;
        break;
      case 'response.created':
        this.#responses.add(event.response.id);
        break;
      case 'response.output_audio.delta':
        if (this.#dead.has(event.response_id)) break;
        this.isSilenced = false;
        this.#sound.play(event.item_id, event.delta);
        break;
      case 'response.output_audio.done':
        this.#sound.finish(event.item_id);
        break;
      case 'response.done':
        this.#responses.delete(event.response.id);
        this.#dead.delete(event.response.id);
        if (event.response.status === 'cancelled') this.silence();
        break;
      case 'input_audio_buffer.speech_started':
        if (this.#interrupts) this.silence();
        break;
      case 'conversation.item.truncated':
        // What history holds now is shown.
        this.#sendUnasked({ type: 'conversation.item.retrieve', item_id: event.item_id });
        break;
      case 'parley.state':
        this.isSilenced = false; // the server knows it, too
        this.#sound.hold(event.state === 'held');
        break;
      case 'error':
        return String(event.error?.event_id ?? '').startsWith(UNASKED);
      default:
    }
    return false;
  }

  /** What the loudspeaker tells of an item. */
  progress({ itemId, playedMs, bufferedMs, isPlaying }) {
    if (itemId !== this.#current) this.#leave();
    this.#current = itemId;
    this.#playedMs.set(itemId, playedMs);
    const isCutting = this.#cutting.has(itemId);
    const isOver = !isPlaying && bufferedMs === 0 && !isCutting;
    this.#conversation.played(itemId, playedMs, isOver);
    if (!isCutting) this.#acknowledge(itemId, playedMs, !isPlaying);
    if (isPlaying === this.isPlaying) return;
    this.isPlaying = isPlaying;
    this.#endDryness();
    if (!isPlaying && !isCutting) this.#dryTimer = setTimeout(() => this.#noteDryness(), DRY_MS);
    this.#onChange();
  }

  /** The user wants silence. `activeId`: the response that is being made, or null. */
  interrupt(activeId) {
    // What answers next is to know what was heard until now.
    if (this.isPlaying) this.#acknowledge(this.#current, this.#playedMs.get(this.#current), true);
    if (activeId !== null) this.#sendUnasked({ type: 'response.cancel', response_id: activeId });
    this.silence();
  }

  /** Silence all that has come so far; the server is told how much of it was heard. */
  silence() {
    const isSilenced = this.#cutting.size > 0;
    const ids = this.#kill();
    this.isSilenced = true;
    // What plays may also be of a response outside of the conversation.
    if (ids.length > 0 || (this.isPlaying && !isSilenced)) this.#clear(ids, true);
    this.#onChange();
  }

  /** The socket is lost: the server knows what was heard, and says the rest again. */
  lose() {
    this.#endDryness();
    this.#clear(this.#kill(), false);
    this.#responses.clear();
    this.#dead.clear();
  }

  // Of what is being made no further sound is played. Returns the items that are to be cut off.
  #kill() {
    for (const id of this.#responses) this.#dead.add(id);
    const ids = this.#conversation.unheard().filter((id) => !this.#cutting.has(id));
    for (const id of ids) this.#cutting.add(id);
    return ids;
  }

  // A new item may begin before the loudspeaker answers: only those named are cut off.
  async #clear(ids, isTold) {
    const played = await this.#sound.clear();
    if (played) this.#playedMs.set(played.itemId, played.playedMs);
    if (played?.itemId === this.#current || !played) this.#fallSilent();
    for (const id of ids) {
      const { receivedMs } = this.#conversation.received(id);
      const heardMs = Math.floor(Math.min(this.#playedMs.get(id) ?? 0, receivedMs));
      this.#cutting.delete(id);
      const isCut = this.#conversation.cut(id, heardMs);
      if (!isTold) continue;
      this.#send({ type: 'parley.playback', item_id: id, played_ms: heardMs });
      if (!isCut) continue;
      this.#sendUnasked({
        type: 'conversation.item.truncate',
        item_id: id,
        content_index: 0,
        audio_end_ms: heardMs,
      });
    }
  }

  #fallSilent() {
    if (!this.isPlaying) return;
    this.isPlaying = false;
    this.#onChange();
  }

  #noteDryness() {
    this.isDry = this.isCutShort;
    if (this.isDry) this.#onChange();
  }

  #endDryness() {
    clearTimeout(this.#dryTimer);
    this.isDry = false;
  }

  // Another item plays now: what was there before has been played to its end.
  #leave() {
    const id = this.#current;
    if (id === null || this.#cutting.has(id)) return;
    const { receivedMs, hasAllAudio } = this.#conversation.received(id);
    if (!hasAllAudio || this.#conversation.get(id)?.cut !== null) return;
    this.#conversation.played(id, receivedMs, true);
    this.#acknowledge(id, receivedMs, true);
    this.#playedMs.delete(id);
  }

  #acknowledge(id, playedMs, isLast) {
    if (id !== this.#acknowledged.id) this.#acknowledged = { id, ms: 0 };
    const ms = Math.floor(playedMs);
    if (ms - this.#acknowledged.ms < (isLast ? 1 : ACKNOWLEDGE_MS)) return;
    this.#acknowledged.ms = ms;
    this.#send({ type: 'parley.playback', item_id: id, played_ms: ms });
  }

  #sendUnasked(event) {
    this.#count += 1;
    this.#send({ ...event, event_id: `${UNASKED}${this.#count}` });
  }
}
