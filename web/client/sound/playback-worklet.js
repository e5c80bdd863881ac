// Voice out: plays what the jitter buffer gives, and tells what was really rendered, and when.

import { JitterBuffer } from './jitter-buffer.js';

const REPORT_MS = 50; // between reports while it plays
const TAKEN_MS = 100; // of rendered sound in one message

class Playback extends AudioWorkletProcessor {
  #buffer = new JitterBuffer(sampleRate);
  #peak = 0; // since the last report
  #reportAt = 0; // the frame at which the next report is due
  #taken = null; // {samples, filled, frame, isFirst}: rendered sound that is to be told
  #isTaking;
  #isClosed = false;

  constructor({ processorOptions }) {
    super();
    this.#isTaking = processorOptions.isRecorded;
    this.port.onmessage = ({ data }) => this.#obey(data);
  }

  process(_inputs, [output]) {
    const [block] = output;
    this.#buffer.pull(block);
    for (let n = 1; n < output.length; n += 1) output[n].set(block);
    let peak = 0;
    for (let n = 0; n < block.length; n += 1) peak = Math.max(peak, Math.abs(block[n]));
    this.#peak = Math.max(this.#peak, peak);
    if (this.#isTaking) this.#take(block, peak > 0 || this.#buffer.isSounding);
    for (const event of this.#buffer.takeEvents()) this.#tell(event);
    if (this.#buffer.isSounding && currentFrame >= this.#reportAt) this.#report(block.length);
    return !this.#isClosed;
  }

  #obey({ type, id, samples, isHeld }) {
    switch (type) {
      case 'announce':
        this.#buffer.announce(id);
        break;
      case 'push':
        this.#buffer.push(id, samples);
        break;
      case 'finish':
        this.#buffer.finish(id);
        break;
      case 'hold':
        this.#buffer.hold(isHeld);
        break;
      case 'clear':
        this.#clear();
        break;
      default:
        this.#isClosed = true;
        break;
    }
  }

  #clear() {
    const first = this.#buffer.clear();
    this.port.postMessage({ type: 'cleared', frame: currentFrame, first, ...this.#figures() });
  }

  #tell({ type, id, at, played }) {
    this.port.postMessage({ type, id, frame: currentFrame + at, played, ...this.#figures() });
  }

  #report(length) {
    const { id, played } = this.#buffer.first;
    const frame = currentFrame + length;
    this.port.postMessage({ type: 'progress', id, frame, played, ...this.#figures() });
    this.#reportAt = currentFrame + (REPORT_MS * sampleRate) / 1000;
  }

  #figures() {
    const { bufferedMs, targetMs, starvations, isSounding } = this.#buffer;
    const peak = this.#peak;
    this.#peak = 0;
    return { bufferedMs, targetMs, starvations, isSounding, peak };
  }

  #take(block, isSound) {
    if (!isSound) {
      if (this.#taken) this.#giveTaken(true);
      return;
    }
    this.#taken ??= this.#newTaken(true, currentFrame);
    const taken = this.#taken;
    taken.samples.set(block, taken.filled);
    taken.filled += block.length;
    if (taken.filled + block.length > taken.samples.length) this.#giveTaken(false);
  }

  #newTaken(isFirst, frame) {
    const samples = new Float32Array(Math.round((TAKEN_MS * sampleRate) / 1000));
    return { samples, filled: 0, frame, isFirst };
  }

  #giveTaken(isLast) {
    const { samples, filled, frame, isFirst } = this.#taken;
    const given = samples.slice(0, filled);
    this.port.postMessage({ type: 'taken', samples: given, frame, isFirst, isLast }, [given.buffer]);
    this.#taken = isLast ? null : this.#newTaken(false, frame + filled);
  }
}

registerProcessor('parley-playback', Playback);
