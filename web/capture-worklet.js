// Microphone in: the context's rate to 24 kHz PCM16, 20 ms at a time.
// The context's rate is whatever the browser gives; some refuse any other.

import { Resampler } from './resample.js';

const WIRE_RATE_HZ = 24000;
const CHUNK_SAMPLES = 480; // 20 ms

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = sampleRate === WIRE_RATE_HZ ? null : new Resampler(sampleRate, WIRE_RATE_HZ);
    this.chunk = new Int16Array(CHUNK_SAMPLES);
    this.filled = 0;
    this.peak = 0;
  }

  process([input]) {
    const block = input[0];
    if (!block) return true; // the microphone is muted or not there yet
    for (const sample of this.resampler ? this.resampler.push(block) : block) {
      const clipped = Math.max(-1, Math.min(1, sample));
      this.peak = Math.max(this.peak, Math.abs(clipped));
      this.chunk[this.filled] = Math.round(clipped * 32767);
      this.filled += 1;
      if (this.filled === CHUNK_SAMPLES) this.flush();
    }
    return true;
  }

  flush() {
    const pcm = this.chunk.slice();
    this.port.postMessage({ pcm, peak: this.peak }, [pcm.buffer]);
    this.filled = 0;
    this.peak = 0;
  }
}

registerProcessor('capture', Capture);
