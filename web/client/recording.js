// Both sides of a conversation on one time line, as a WAV file. Pure: samples in, bytes out.

const RATE_HZ = 24000;
const CHANNELS = ['input', 'output']; // left and right
const SAMPLE_BYTES = 2;
const HEADER_BYTES = 44;
// Clocks and resamplers round: a block that ends this near to the next is followed by it at once.
const TOLERANCE_SAMPLES = 480; // 20 ms
const MOST_MS = 60 * 60 * 1000; // at most 350 MB
const WRITTEN_SAMPLES = 10 * RATE_HZ; // in one piece of the file: no buffer holds all of it

/**
 * Keeps the last hour as PCM16 blocks; what is older is dropped. Silence and what was never given
 * are the same and cost nothing: only blocks with sound are kept.
 */
export class Recording {
  #mostSamples;
  #blocks = { input: [], output: [] }; // {at, samples: Int16Array}, ascending
  #ends = { input: null, output: null }; // where the channel's next block follows without a gap
  #first = null;
  #end = 0;

  constructor(mostMs = MOST_MS) {
    this.#mostSamples = (mostMs * RATE_HZ) / 1000;
  }

  /** Whether there is anything to hear. */
  get isEmpty() {
    return this.#blocks.input.length + this.#blocks.output.length === 0;
  }

  /** How long it is, in ms. */
  get lastsMs() {
    return this.#first === null ? 0 : ((this.#end - this.#first) * 1000) / RATE_HZ;
  }

  /**
   * @param {'input' | 'output'} channel
   * @param {Float32Array} samples mono at 24 kHz, -1 to 1
   * @param {number} atSample where they begin, in samples of a time line common to both channels
   */
  add(channel, samples, atSample) {
    const follows = this.#ends[channel];
    const isNear = follows !== null && Math.abs(atSample - follows) <= TOLERANCE_SAMPLES;
    const at = isNear ? follows : Math.max(atSample, follows ?? atSample);
    this.#ends[channel] = at + samples.length;
    this.#first = Math.min(this.#first ?? at, at);
    this.#end = Math.max(this.#end, at + samples.length);
    if (samples.some((sample) => sample !== 0)) {
      this.#blocks[channel].push({ at, samples: Int16Array.from(samples, toPcm) });
    }
    this.#forget();
  }

  /** @returns {Blob} audio/wav: two channels of PCM16 at 24 kHz, input left and output right */
  toBlob() {
    const length = this.#first === null ? 0 : this.#end - this.#first;
    const pieces = [header(length)];
    const places = { input: 0, output: 0 };
    for (let at = 0; at < length; at += WRITTEN_SAMPLES) {
      const count = Math.min(WRITTEN_SAMPLES, length - at);
      pieces.push(this.#write(this.#first + at, count, places));
    }
    return new Blob(pieces, { type: 'audio/wav' });
  }

  // `places` holds the first block of each channel that reaches into this piece or a later one.
  #write(from, count, places) {
    const view = new DataView(new ArrayBuffer(count * CHANNELS.length * SAMPLE_BYTES));
    CHANNELS.forEach((channel, side) => {
      const blocks = this.#blocks[channel];
      for (let n = places[channel]; n < blocks.length && blocks[n].at < from + count; n += 1) {
        const { at, samples } = blocks[n];
        const end = Math.min(at + samples.length, from + count);
        for (let place = Math.max(at, from); place < end; place += 1) {
          const offset = ((place - from) * CHANNELS.length + side) * SAMPLE_BYTES;
          view.setInt16(offset, samples[place - at], true);
        }
        if (at + samples.length <= from + count) places[channel] = n + 1;
      }
    });
    return view.buffer;
  }

  #forget() {
    const oldest = this.#end - this.#mostSamples;
    if (oldest <= this.#first) return;
    this.#first = oldest;
    for (const channel of CHANNELS) {
      const blocks = this.#blocks[channel];
      while (blocks.length && blocks[0].at + blocks[0].samples.length <= oldest) blocks.shift();
    }
  }
}

function toPcm(sample) {
  return Math.round(Math.max(-1, Math.min(1, sample)) * 32767);
}

// The canonical header of a WAV file of PCM, for so many samples of each channel.
function header(length) {
  const bytes = length * CHANNELS.length * SAMPLE_BYTES;
  const view = new DataView(new ArrayBuffer(HEADER_BYTES));
  const write = (at, text) => [...text].forEach((sign, n) => view.setUint8(at + n, sign.charCodeAt(0)));
  write(0, 'RIFF');
  view.setUint32(4, HEADER_BYTES - 8 + bytes, true);
  write(8, 'WAVEfmt ');
  view.setUint32(16, 16, true); // of this part
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, CHANNELS.length, true);
  view.setUint32(24, RATE_HZ, true);
  view.setUint32(28, RATE_HZ * CHANNELS.length * SAMPLE_BYTES, true);
  view.setUint16(32, CHANNELS.length * SAMPLE_BYTES, true);
  view.setUint16(34, 8 * SAMPLE_BYTES, true);
  write(36, 'data');
  view.setUint32(40, bytes, true);
  return view.buffer;
}
