// What sound is on the wire, both ways: Opus where the browser has it, 16-bit samples elsewhere.

import { decodeBase64, encodeBase64 } from '../wire.js';
import { hasOpus, OPUS_FORMAT, OpusDecoder, OpusEncoder } from './opus.js';

const PCM_RATE_HZ = 24000;
const FULL_SCALE = 32768;

const PCM_FORMAT = { type: 'audio/pcm', rate: PCM_RATE_HZ };

// wanted: 'auto', 'opus' or 'pcm'. Opus that the browser lacks becomes PCM: it is heard as well.
// {name, format, newEncoder(onPacket), newDecoder({onSamples, onFinished})}
export async function openCodec(wanted) {
  if (wanted !== 'pcm' && (await hasOpus())) {
    return {
      name: 'opus',
      format: OPUS_FORMAT,
      newEncoder: (onPacket) => new OpusEncoder(onPacket),
      newDecoder: (handlers) => new OpusDecoder(handlers),
    };
  }
  return {
    name: 'pcm',
    format: PCM_FORMAT,
    newEncoder: (onPacket) => new PcmEncoder(onPacket),
    newDecoder: (handlers) => new PcmDecoder(handlers),
  };
}

class PcmEncoder {
  #onPacket;

  constructor(onPacket) {
    this.#onPacket = onPacket;
  }

  encode(samples) {
    const bytes = new Uint8Array(samples.length * 2);
    const view = new DataView(bytes.buffer);
    for (let n = 0; n < samples.length; n += 1) {
      const level = Math.round(samples[n] * FULL_SCALE);
      view.setInt16(2 * n, Math.max(-FULL_SCALE, Math.min(FULL_SCALE - 1, level)), true);
    }
    this.#onPacket(encodeBase64(bytes));
  }

  close() {
    this.#onPacket = () => {};
  }
}

class PcmDecoder {
  #onSamples;
  #onFinished;
  #odd = new Map(); // item -> the first byte of a sample that a delta cut in two

  constructor({ onSamples, onFinished }) {
    this.#onSamples = onSamples;
    this.#onFinished = onFinished;
  }

  decode(itemId, base64) {
    let bytes = decodeBase64(base64);
    const odd = this.#odd.get(itemId);
    if (odd !== undefined) bytes = Uint8Array.of(odd, ...bytes);
    if (bytes.length % 2 === 1) this.#odd.set(itemId, bytes[bytes.length - 1]);
    else this.#odd.delete(itemId);
    const samples = new Float32Array(bytes.length >> 1);
    const view = new DataView(bytes.buffer);
    for (let n = 0; n < samples.length; n += 1) samples[n] = view.getInt16(2 * n, true) / FULL_SCALE;
    this.#onSamples(itemId, samples, PCM_RATE_HZ);
  }

  finish(itemId) {
    this.#odd.delete(itemId);
    this.#onFinished(itemId);
  }

  forget(itemId) {
    this.#odd.delete(itemId);
  }

  clear() {
    this.#odd.clear();
  }
}
