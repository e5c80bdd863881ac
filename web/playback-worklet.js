// Voice out: items of PCM16 at 24 kHz wait in a queue, play at the context's rate, and can be
// silenced at once. It counts what was really played, which is what the listener has heard.

import { Resampler } from './resample.js';

const WIRE_RATE_HZ = 24000;
const FADE_SAMPLES = 128; // one block: a stop without a click
const REPORT_BLOCKS = 20; // tell what was played about every 50 ms

class Playback extends AudioWorkletProcessor {
  constructor() {
    super();
    this.queue = []; // { item, samples }
    this.offset = 0; // into the first entry
    this.played = new Map(); // item -> samples at the context's rate
    this.resamplers = new Map(); // item -> its own continuous resampler
    this.blocks = 0;
    this.port.onmessage = ({ data }) => (data.flush ? this.flush() : this.add(data));
  }

  add({ item, pcm }) {
    let samples = Float32Array.from(pcm, (value) => value / 32768);
    if (sampleRate !== WIRE_RATE_HZ) {
      if (!this.resamplers.has(item)) {
        this.resamplers.clear(); // items arrive one after the other
        this.resamplers.set(item, new Resampler(WIRE_RATE_HZ, sampleRate));
      }
      samples = this.resamplers.get(item).push(samples);
    }
    if (samples.length) this.queue.push({ item, samples });
  }

  flush() {
    const item = this.queue.length ? this.queue[0].item : null;
    const tail = new Float32Array(FADE_SAMPLES);
    const count = this.take(tail);
    for (let n = 0; n < count; n += 1) tail[n] *= 1 - n / FADE_SAMPLES;
    this.queue = [];
    this.offset = 0;
    this.resamplers.clear();
    this.fade = count ? tail : null;
    this.port.postMessage({ flushed: item, playedMs: item === null ? 0 : this.playedMs(item) });
    this.played.clear();
  }

  take(output) {
    let filled = 0;
    while (filled < output.length && this.queue.length) {
      const { item, samples } = this.queue[0];
      const count = Math.min(output.length - filled, samples.length - this.offset);
      output.set(samples.subarray(this.offset, this.offset + count), filled);
      this.played.set(item, (this.played.get(item) ?? 0) + count);
      filled += count;
      this.offset += count;
      if (this.offset === samples.length) {
        this.queue.shift();
        this.offset = 0;
      }
    }
    return filled;
  }

  playedMs(item) {
    return Math.floor(((this.played.get(item) ?? 0) * 1000) / sampleRate);
  }

  process(_inputs, [output]) {
    const channel = output[0];
    if (this.fade) {
      channel.set(this.fade.subarray(0, channel.length));
      this.fade = null;
    } else {
      this.take(channel);
    }
    for (let n = 1; n < output.length; n += 1) output[n].set(channel);
    this.blocks += 1;
    if (this.blocks % REPORT_BLOCKS === 0) {
      this.port.postMessage({ playing: this.queue.length ? this.queue[0].item : null });
    }
    return true;
  }
}

registerProcessor('playback', Playback);
