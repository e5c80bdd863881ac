// Microphone in: the context's rate to frames of 20 ms at 24 kHz, as Float32Array.
//
// Frames come as steadily as the context's clock, whatever the microphone gives: muted, or silenced
// by the system, it is silence, so that the server's time goes on.

import { Resampler } from './resampler.js';

const FRAME_RATE_HZ = 24000; // the wire's
const FRAME_SAMPLES = 480; // 20 ms: one packet of Opus
const FADE_SAMPLES = 120; // 5 ms, from and to mute

class Capture extends AudioWorkletProcessor {
  #resampler = sampleRate === FRAME_RATE_HZ ? null : new Resampler(sampleRate, FRAME_RATE_HZ);
  #silence = new Float32Array(128); // for blocks that the graph leaves out
  #frame = new Float32Array(FRAME_SAMPLES);
  #filled = 0;
  #atSample = null; // of the frame, on the context's time line at 24 kHz
  #open = 0; // 0 is muted, FADE_SAMPLES is not
  #isMuted;
  #isClosed = false;

  constructor({ processorOptions }) {
    super();
    this.#isMuted = processorOptions.isMuted;
    this.port.onmessage = ({ data }) => {
      if ('isMuted' in data) this.#isMuted = data.isMuted;
      else this.#isClosed = true;
    };
  }

  process([input]) {
    this.#atSample ??= Math.round((currentFrame * FRAME_RATE_HZ) / sampleRate);
    const block = input[0] ?? this.#silence;
    const samples = this.#resampler ? this.#resampler.push(block) : block;
    for (let n = 0; n < samples.length; n += 1) this.#add(samples[n]);
    return !this.#isClosed;
  }

  #add(sample) {
    const aim = this.#open + (this.#isMuted ? -1 : 1);
    this.#open = Math.max(0, Math.min(FADE_SAMPLES, aim));
    const gain = 0.5 - 0.5 * Math.cos((Math.PI * this.#open) / FADE_SAMPLES);
    this.#frame[this.#filled] = sample * gain;
    this.#filled += 1;
    if (this.#filled < FRAME_SAMPLES) return;
    const samples = this.#frame;
    this.port.postMessage({ samples, atSample: this.#atSample }, [samples.buffer]);
    this.#frame = new Float32Array(FRAME_SAMPLES);
    this.#filled = 0;
    this.#atSample += FRAME_SAMPLES;
  }
}

registerProcessor('parley-capture', Capture);
