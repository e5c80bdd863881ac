// The loudspeaker: deltas in, sound out, and at any time what of it has been heard.
//
// The worklet tells what it renders; that is heard later, by the latency of the device. So its
// reports are told when they have become true of what is heard.

import { Resampler } from './resampler.js';

const WORKLET = new URL('./playback-worklet.js', import.meta.url);
const RECORD_RATE_HZ = 24000;
const CLEAR_LIMIT_MS = 500; // a worklet that runs answers within its block
const REMEMBERED = 64; // cleared items of which sound may still arrive

export class Loudspeaker {
  #output;
  #rateHz;
  #node;
  #decoder;
  #handlers;
  #waiting = new Map(); // items that have not been rendered to the end -> their Resampler, or null
  #cleared = new Set();
  #clears = []; // {dropped, resolve}: asked of the worklet, not answered yet
  #reports = []; // of the worklet, to be told at their time
  #timer = null;
  #toldMs = new Map(); // item -> what was last told
  #peak = 0;
  #isClosed = false;
  #record = null; // {resampler, atSample}: of the rendered sound that is being told

  static addWorklet(context) {
    return context.audioWorklet.addModule(WORKLET);
  }

  // handlers: onProgress, onStarted, onRecorded(samples at 24 kHz, atSample) or null.
  constructor(output, codec, handlers) {
    this.#output = output;
    this.#rateHz = output.context.sampleRate;
    this.#handlers = handlers;
    this.#decoder = codec.newDecoder({
      onSamples: (id, samples, rateHz) => this.#pushSamples(id, samples, rateHz),
      onFinished: (id) => this.#pushEnd(id),
    });
    this.#node = new AudioWorkletNode(output.context, 'parley-playback', {
      numberOfInputs: 0,
      outputChannelCount: [1],
      processorOptions: { isRecorded: handlers.onRecorded !== null },
    });
    this.#node.port.onmessage = ({ data }) => this.#receive(data);
    output.connect(this.#node);
  }

  // A delta of an item. Items play in the order in which they came here first.
  play(id, base64) {
    if (this.#cleared.has(id)) return;
    if (!this.#waiting.has(id)) {
      this.#waiting.set(id, null);
      this.#post({ type: 'announce', id });
    }
    this.#decoder.decode(id, base64);
  }

  // No more of it comes.
  finish(id) {
    if (this.#waiting.has(id)) this.#decoder.finish(id);
  }

  hold(isHeld) {
    this.#post({ type: 'hold', isHeld });
  }

  // Silence within a fade. What was playing, or waited to: {itemId, playedMs}, or null. Of the
  // items that were there, nothing is played any more.
  clear() {
    const dropped = new Set(this.#waiting.keys());
    this.#decoder.clear();
    this.#waiting.clear();
    for (const id of dropped) this.#cleared.add(id);
    for (const id of this.#cleared) {
      if (this.#cleared.size <= REMEMBERED) break;
      this.#cleared.delete(id);
    }
    if (this.#isClosed) return Promise.resolve(null);
    this.#post({ type: 'clear' });
    return new Promise((resolve) => {
      this.#clears.push({ dropped, resolve });
      // Of two answers the first counts: a worklet whose context is interrupted gives none.
      setTimeout(() => resolve(this.#lastTold(dropped)), CLEAR_LIMIT_MS);
    });
  }

  // The loudest since the last call, 0 to 1.
  takePeak() {
    const peak = this.#peak;
    this.#peak = 0;
    return peak;
  }

  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#decoder.clear();
    this.#post({ type: 'close' });
    this.#node.port.onmessage = null;
    this.#node.disconnect();
    for (const { resolve } of this.#clears.splice(0)) resolve(null);
  }

  #lastTold([id]) {
    return id === undefined ? null : { itemId: id, playedMs: this.#toldMs.get(id) ?? 0 };
  }

  #post(message, moved = []) {
    this.#node.port.postMessage(message, moved);
  }

  #pushSamples(id, samples, rateHz) {
    if (!this.#waiting.has(id)) return;
    if (rateHz !== this.#rateHz && !this.#waiting.get(id)) {
      this.#waiting.set(id, new Resampler(rateHz, this.#rateHz));
    }
    this.#push(id, this.#waiting.get(id)?.push(samples) ?? samples);
  }

  #pushEnd(id) {
    if (!this.#waiting.has(id)) return;
    const rest = this.#waiting.get(id)?.finish();
    if (rest?.length) this.#push(id, rest.slice());
    this.#post({ type: 'finish', id });
  }

  #push(id, samples) {
    this.#post({ type: 'push', id, samples }, [samples.buffer]);
  }

  #receive(data) {
    switch (data.type) {
      case 'taken':
        this.#noteRendered(data);
        return;
      case 'cleared':
        this.#noteCleared(data);
        return;
      case 'ended':
        this.#waiting.delete(data.id);
        this.#decoder.forget(data.id);
        for (const { dropped } of this.#clears) dropped.delete(data.id);
        break;
      case 'started':
        if (data.played === 0) {
          this.#handlers.onStarted({ itemId: data.id, atMs: this.#heardAtMs(data.frame) });
        }
        break;
      default:
        break;
    }
    this.#peak = Math.max(this.#peak, data.peak);
    this.#reports.push(this.#reportOf(data));
    this.#tellDue();
  }

  #heardAtMs(frame) {
    return this.#output.heardAtMs(frame / this.#rateHz);
  }

  #reportOf({ id, frame, played, bufferedMs, targetMs, starvations, isSounding }) {
    return {
      atMs: this.#heardAtMs(frame),
      told: {
        itemId: id,
        playedMs: (played * 1000) / this.#rateHz,
        bufferedMs,
        isPlaying: isSounding,
        targetMs,
        starvations,
      },
    };
  }

  // Tells the reports whose time has come, and waits for the next.
  #tellDue() {
    clearTimeout(this.#timer);
    while (this.#reports.length > 0 && this.#reports[0].atMs <= performance.now()) {
      this.#tell(this.#reports.shift().told);
    }
    if (this.#reports.length === 0) return;
    const waitMs = this.#reports[0].atMs - performance.now();
    this.#timer = setTimeout(() => this.#tellDue(), Math.max(0, waitMs));
  }

  #tell(told) {
    const playedMs = Math.max(told.playedMs, this.#toldMs.get(told.itemId) ?? 0);
    if (!this.#toldMs.has(told.itemId)) this.#toldMs.clear(); // items are heard one by one
    this.#toldMs.set(told.itemId, playedMs);
    this.#handlers.onProgress({ ...told, playedMs });
  }

  #noteCleared({ first, frame, ...figures }) {
    const { dropped, resolve } = this.#clears.shift();
    if (first === null) {
      resolve(this.#lastTold(dropped)); // at most in decoding
      return;
    }
    const { id: itemId } = first;
    this.#reports.push(this.#reportOf({ ...figures, ...first, frame }));
    const playedMs = this.#heardMs(itemId);
    this.#reports = this.#reports.filter(({ told }) => told.itemId !== itemId);
    const { bufferedMs, targetMs, starvations } = figures;
    this.#tell({ itemId, playedMs, bufferedMs, isPlaying: false, targetMs, starvations });
    this.#tellDue();
    resolve({ itemId, playedMs });
  }

  // What has been heard of an item by now: as much as was told, or what leads to the next report.
  #heardMs(id) {
    const toldMs = this.#toldMs.get(id) ?? 0;
    const next = this.#reports.find(({ told }) => told.itemId === id);
    return Math.max(0, toldMs, next.told.playedMs - Math.max(0, next.atMs - performance.now()));
  }

  #noteRendered({ samples, frame, isFirst, isLast }) {
    if (isFirst) {
      this.#record = {
        resampler: this.#rateHz === RECORD_RATE_HZ ? null : new Resampler(this.#rateHz, RECORD_RATE_HZ),
        atSample: Math.round((frame * RECORD_RATE_HZ) / this.#rateHz),
      };
    }
    const { resampler } = this.#record;
    this.#giveRecorded(resampler?.push(samples) ?? samples);
    if (isLast && resampler) this.#giveRecorded(resampler.finish());
  }

  #giveRecorded(samples) {
    if (samples.length === 0) return;
    this.#handlers.onRecorded(samples, this.#record.atSample);
    this.#record.atSample += samples.length;
  }
}
