// Opus through the browser's WebCodecs: frames of 20 ms to packets, packets to samples.

import { decodeBase64, encodeBase64 } from '../wire.js';

const RATE_HZ = 24000; // what the server is told; a decoder may give another one, and says so
const FRAME_US = 20000;
const FRAME_SAMPLES = 480;
const BITS_PER_SECOND = 24000; // good for a voice, and with its JSON less than 64 kbit/s
const TRIAL_FRAMES = 3; // an encoder that looks ahead has given a packet by then
const TRIAL_LIMIT_MS = 1000; // a browser that needs longer for them is none to talk through

const DECODER = { codec: 'opus', sampleRate: RATE_HZ, numberOfChannels: 1 };
const ENCODER = {
  ...DECODER,
  bitrate: BITS_PER_SECOND,
  opus: { frameDuration: FRAME_US, application: 'voip' },
};

export const OPUS_FORMAT = { type: 'audio/opus', rate: RATE_HZ };

// Whether the browser really encodes and decodes: some say that they do, and give nothing.
export async function hasOpus() {
  if (!globalThis.AudioEncoder || !globalThis.AudioDecoder) return false;
  try {
    const encoder = await AudioEncoder.isConfigSupported(ENCODER);
    const decoder = await AudioDecoder.isConfigSupported(DECODER);
    return encoder.supported && decoder.supported && (await tryOpus());
  } catch {
    return false;
  }
}

function tryOpus() {
  return new Promise((resolve) => {
    const decoder = new OpusDecoder({ onSamples: () => settle(true), onFinished: () => {} });
    const encoder = new OpusEncoder((packet) => decoder.decode('trial', packet));
    const timer = setTimeout(() => settle(false), TRIAL_LIMIT_MS);
    const settle = (isGood) => {
      clearTimeout(timer);
      encoder.close();
      decoder.clear();
      resolve(isGood);
    };
    for (let n = 0; n < TRIAL_FRAMES; n += 1) encoder.encode(new Float32Array(FRAME_SAMPLES));
  });
}

export class OpusEncoder {
  #onPacket;
  #encoder;
  #timeUs = 0;

  // onPacket(base64): one raw packet for each frame.
  constructor(onPacket) {
    this.#onPacket = onPacket;
    this.#open();
  }

  // One frame of 20 ms at 24 kHz.
  encode(samples) {
    if (this.#encoder.state === 'closed') this.#open(); // it failed; the sound goes on
    const data = new AudioData({
      format: 'f32-planar',
      sampleRate: RATE_HZ,
      numberOfChannels: 1,
      numberOfFrames: samples.length,
      timestamp: this.#timeUs,
      data: samples,
    });
    this.#timeUs += FRAME_US;
    this.#encoder.encode(data);
    data.close();
  }

  close() {
    this.#onPacket = () => {};
    if (this.#encoder.state !== 'closed') this.#encoder.close();
  }

  #open() {
    this.#encoder = new AudioEncoder({
      output: (chunk) => {
        const bytes = new Uint8Array(chunk.byteLength);
        chunk.copyTo(bytes);
        this.#onPacket(encodeBase64(bytes));
      },
      error: () => {}, // the encoder is closed then, and a new one opened for the next frame
    });
    this.#encoder.configure(ENCODER);
  }
}

// Every item has a decoder of its own: the server encodes each from a fresh start.
export class OpusDecoder {
  #onSamples;
  #onFinished;
  #streams = new Map(); // item -> {decoder, timeUs}

  // onSamples(itemId, Float32Array, rateHz), onFinished(itemId): after all its samples.
  constructor({ onSamples, onFinished }) {
    this.#onSamples = onSamples;
    this.#onFinished = onFinished;
  }

  decode(itemId, base64) {
    const data = decodeBase64(base64);
    if (data.length === 0) return;
    const stream = this.#streamOf(itemId);
    const chunk = new EncodedAudioChunk({ type: 'key', timestamp: stream.timeUs, data });
    stream.timeUs += FRAME_US; // only the order counts: a packet may last longer
    stream.decoder.decode(chunk);
  }

  async finish(itemId) {
    const stream = this.#streams.get(itemId);
    try {
      if (stream?.decoder.state === 'configured') await stream.decoder.flush();
    } catch {
      // it failed, or the item was cleared meanwhile
    }
    if (stream && this.#streams.get(itemId) !== stream) return;
    this.#streams.delete(itemId);
    close(stream);
    this.#onFinished(itemId);
  }

  // No more of the item will be decoded, finished or not.
  forget(itemId) {
    close(this.#streams.get(itemId));
    this.#streams.delete(itemId);
  }

  // Forgets what is being decoded.
  clear() {
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    streams.forEach(close);
  }

  #streamOf(itemId) {
    const known = this.#streams.get(itemId);
    if (known && known.decoder.state !== 'closed') return known;
    const stream = { decoder: null, timeUs: known?.timeUs ?? 0 };
    stream.decoder = new AudioDecoder({
      output: (data) => {
        if (this.#streams.get(itemId) === stream) this.#onSamples(itemId, mono(data), data.sampleRate);
        data.close();
      },
      error: () => {}, // a bad packet closes the decoder; the next packet opens a new one
    });
    stream.decoder.configure(DECODER);
    this.#streams.set(itemId, stream);
    return stream;
  }
}

function mono(data) {
  const samples = new Float32Array(data.numberOfFrames);
  data.copyTo(samples, { planeIndex: 0, format: 'f32-planar' });
  return samples;
}

function close(stream) {
  if (stream && stream.decoder.state !== 'closed') stream.decoder.close();
}
