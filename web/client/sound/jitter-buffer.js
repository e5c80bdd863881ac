// Items of sound wait here until enough of each is there, and leave without a click at any edge.
//
// One number, how far the sound is open, counts up and down between 0 and the samples of a fade,
// and the gain is its raised cosine: whatever happens in whatever state, there is no step. While
// more of an item may come, its last FADE_MS are held back: they are what it can fade out with.

const FADE_MS = 5; // too short to be heard as a fade, long enough to be no click
const FIRST_TARGET_MS = 40; // what one delta usually brings; also the least, for a steady network
const MOST_TARGET_MS = 400; // more would be felt as a slow answer
const RAISE = 1.5; // at a starvation: four of them reach what a bad network needs
const LOWER = 0.9; // after a quiet time
const QUIET_MS = 10000; // of played sound without a starvation

export class JitterBuffer {
  #rateHz;
  #fadeSamples;
  #gains; // by how far the sound is open
  #items = []; // {id, blocks, offset, available, played, isFinished}, in playing order
  #open = 0;
  #isOpening = false; // whether `open` rises, or has; otherwise it falls, or is 0
  #tail = null; // what a clear left to be played, faded already
  #isHeld = false;
  #isDry = false; // the first item ran dry, and no later sound of it has come
  #isExcused = false; // running dry now would be no jitter
  #quietSamples = 0;
  #events = [];

  constructor(rateHz) {
    this.#rateHz = rateHz;
    this.#fadeSamples = Math.round((FADE_MS * rateHz) / 1000);
    this.#gains = Float32Array.from(
      { length: this.#fadeSamples + 1 },
      (_, n) => 0.5 - 0.5 * Math.cos((Math.PI * n) / this.#fadeSamples),
    );
    this.targetMs = FIRST_TARGET_MS;
    this.starvations = 0;
  }

  // Says that sound of the item will come: items play in the order in which they were announced.
  announce(id) {
    if (this.#find(id)) return;
    this.#items.push({ id, blocks: [], offset: 0, available: 0, played: 0, isFinished: false });
  }

  // More of an item, as Float32Array, which is the buffer's from now on.
  push(id, samples) {
    if (samples.length === 0) return;
    this.announce(id);
    const item = this.#find(id);
    item.blocks.push(samples);
    item.available += samples.length;
    if (item !== this.#items[0]) return;
    if (this.#isDry) this.#noteStarvation();
    if (!this.#isHeld && item.available >= this.#targetSamples()) this.#isExcused = false;
  }

  // No more of it comes. Sound that waits is played without waiting for more.
  finish(id) {
    const item = this.#find(id);
    if (item) item.isFinished = true;
  }

  // While the other side holds its sound back on purpose, running dry is no jitter.
  hold(isHeld) {
    this.#isHeld = isHeld;
    if (isHeld) this.#isExcused = true;
  }

  // Drops everything but the fade. What was first in the queue: {id, played}, in samples with the
  // fade, or null.
  clear() {
    const [item] = this.#items;
    if (!item) return null;
    const tail = new Float32Array(Math.min(this.#open, item.available));
    this.#copy(item, tail, 0, tail.length, -1);
    if (tail.length > 0) this.#tail = tail;
    this.#items = [];
    this.#close();
    return { id: item.id, played: item.played };
  }

  // Fills a block, with silence where there is no sound.
  pull(output) {
    let filled = this.#pullTail(output);
    while (filled < output.length && this.#items.length > 0) {
      const [item] = this.#items;
      if (item.isFinished && item.available === 0) this.#end(item, filled);
      else if (this.isSounding) filled += this.#play(item, output, filled);
      else if (this.#isReady(item)) this.#start(item, filled);
      else if (this.#isAbandoned(item)) this.#end(item, filled);
      else break;
    }
    output.fill(0, filled);
  }

  // What happened in the pulls since the last call: {type, id, at, played}. 'started' comes again
  // after 'dry'; 'ended' comes once. `at` is the place in the block, `played` is in samples.
  takeEvents() {
    const events = this.#events;
    if (events.length > 0) this.#events = [];
    return events;
  }

  // Whether an item is being played; not while it waits for more, nor in the fade of a clear.
  get isSounding() {
    return this.#isOpening || this.#open > 0;
  }

  // The item that is first, or null: {id, played}, in samples.
  get first() {
    const [item] = this.#items;
    return item ? { id: item.id, played: item.played } : null;
  }

  get bufferedMs() {
    const samples = this.#items.reduce((sum, { available }) => sum + available, 0);
    return (samples * 1000) / this.#rateHz;
  }

  #find(id) {
    return this.#items.find((item) => item.id === id);
  }

  #targetSamples() {
    return (this.targetMs * this.#rateHz) / 1000;
  }

  #isReady(item) {
    return item.isFinished || item.available >= this.#targetSamples();
  }

  // An item that nobody finished does not keep the next one waiting.
  #isAbandoned(item) {
    const next = this.#items[1];
    return item.available <= this.#fadeSamples && next !== undefined && this.#isReady(next);
  }

  #start(item, at) {
    this.#isOpening = true;
    this.#events.push({ type: 'started', id: item.id, at, played: item.played });
  }

  #end(item, at) {
    this.#items.shift();
    this.#close();
    this.#events.push({ type: 'ended', id: item.id, at, played: item.played });
  }

  #close() {
    this.#open = 0;
    this.#isOpening = false;
    this.#isDry = false;
  }

  // Plays on, open as far as the fade's room, or closing until it is silent: the samples played.
  #play(item, output, filled) {
    const room = output.length - filled;
    const free = item.available - this.#fadeSamples;
    if (this.#isOpening && free > 0) {
      const count = Math.min(room, free);
      this.#copy(item, output, filled, count, 1);
      this.#noteQuiet(count);
      return count;
    }
    this.#isOpening = false;
    const count = Math.min(room, item.available, this.#open);
    this.#copy(item, output, filled, count, -1);
    if (this.#open === 0) this.#fellSilent(item, filled + count);
    return count;
  }

  #fellSilent(item, at) {
    if (!item.isFinished) {
      this.#isDry = true;
      this.#events.push({ type: 'dry', id: item.id, at, played: item.played });
      if (item.available > 0) this.#noteStarvation(); // it came during the fade
    } else if (item.available <= this.#fadeSamples) {
      item.played += item.available; // a rest that is shorter than its own fade
      item.available = 0;
    }
  }

  #copy(item, output, at, count, step) {
    const top = this.#fadeSamples;
    let done = 0;
    while (done < count) {
      const [block] = item.blocks;
      const end = Math.min(count, done + block.length - item.offset);
      for (; done < end; done += 1) {
        this.#open = Math.max(0, Math.min(top, this.#open + step));
        output[at + done] = block[item.offset] * this.#gains[this.#open];
        item.offset += 1;
      }
      if (item.offset === block.length) {
        item.blocks.shift();
        item.offset = 0;
      }
    }
    item.available -= count;
    item.played += count;
  }

  #pullTail(output) {
    if (!this.#tail) return 0;
    const count = Math.min(output.length, this.#tail.length);
    output.set(this.#tail.subarray(0, count));
    this.#tail = count < this.#tail.length ? this.#tail.subarray(count) : null;
    return count;
  }

  // Only sound that comes late proves that running dry was jitter; an end that comes late does not.
  #noteStarvation() {
    this.#isDry = false;
    this.#quietSamples = 0;
    if (this.#isExcused || this.#isHeld) return;
    this.starvations += 1;
    this.targetMs = Math.min(MOST_TARGET_MS, this.targetMs * RAISE);
  }

  #noteQuiet(samples) {
    this.#quietSamples += samples;
    if (this.#quietSamples * 1000 < QUIET_MS * this.#rateHz) return;
    this.#quietSamples = 0;
    this.targetMs = Math.max(FIRST_TARGET_MS, this.targetMs * LOWER);
  }
}
