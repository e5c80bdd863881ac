// Sound both ways: a microphone that gives packets and a loudspeaker that takes deltas.

import { openCodec } from './codec.js';
import { Loudspeaker } from './loudspeaker.js';
import { Microphone } from './microphone.js';
import { Output } from './output.js';
import { ParleyError } from '../errors.js';

const nothing = () => {};
const NO_HANDLERS = {
  onPacket: nothing, // (base64): 20 ms of the microphone; silence while muted
  onProgress: nothing, // ({itemId, playedMs, bufferedMs, isPlaying, targetMs, starvations}): as heard
  onStarted: nothing, // ({itemId, atMs}): performance.now() of an item's first sample heard
  onMicrophoneLost: nothing, // (ParleyError): it is gone, and there is no other
  onMicrophoneChanged: nothing, // (microphone): another one took over, or the system muted it
  onProblem: nothing, // (ParleyError): not fatal: a fallback was taken, or the sound is held back
  onRecorded: null, // ('input' | 'output', Float32Array at 24 kHz, atSample): on one time line
};

export class Sound {
  #output;
  #codec;
  #handlers;
  #loudspeaker;
  #encoder;
  #microphone = null;
  #choice; // what is wanted: true, false or {deviceId}
  #isMuted = false;
  #isClosed = false;
  #isReopening = false;
  #peak = 0; // of the microphone

  // To be called within a user's gesture. microphone: true, false or {deviceId}; codec: 'auto',
  // 'opus' or 'pcm'; and handlers. Throws ParleyError.
  static async open({ microphone = true, codec = 'auto', ...handlers }) {
    Output.prepareFor(microphone !== false);
    const output = new Output();
    const sound = new Sound(output, microphone, { ...NO_HANDLERS, ...handlers });
    try {
      await sound.#start(codec);
      return sound;
    } catch (error) {
      await sound.close();
      throw error;
    }
  }

  constructor(output, choice, handlers) {
    this.#output = output;
    this.#choice = choice;
    this.#handlers = handlers;
  }

  // What the session's formats are to be: {type, rate}.
  get inputFormat() {
    return this.#codec.format;
  }

  get outputFormat() {
    return this.#codec.format;
  }

  // 'opus' or 'pcm'.
  get codec() {
    return this.#codec.name;
  }

  // {label, deviceId, settings, isMutedBySystem} as they are, or null.
  get microphone() {
    return this.#microphone?.facts ?? null;
  }

  get isMuted() {
    return this.#isMuted;
  }

  play(itemId, base64) {
    this.#loudspeaker.play(itemId, base64);
  }

  finish(itemId) {
    this.#loudspeaker.finish(itemId);
  }

  hold(isHeld) {
    this.#loudspeaker.hold(isHeld);
  }

  clear() {
    return this.#loudspeaker.clear();
  }

  mute() {
    this.#setMuted(true);
  }

  unmute() {
    this.#setMuted(false);
  }

  // Peaks since the last call, 0 to 1.
  levels() {
    const input = this.#peak;
    this.#peak = 0;
    return { input, output: this.#loudspeaker.takePeak() };
  }

  // Changes or drops the microphone. If the new one cannot be had, the old one stays: ParleyError.
  async useMicrophone(choice) {
    const next = choice === false ? null : await this.#ask(choice);
    this.#choice = choice;
    this.#take(next);
  }

  async close() {
    this.#isClosed = true;
    navigator.mediaDevices?.removeEventListener('devicechange', this.#reopen);
    this.#microphone?.stop();
    this.#microphone = null;
    this.#encoder?.close();
    this.#loudspeaker?.close();
    await this.#output.close();
  }

  async #start(codec) {
    const { context } = this.#output;
    const microphone = this.#choice === false ? null : await this.#ask(this.#choice);
    try {
      await Promise.all([Microphone.addWorklet(context), Loudspeaker.addWorklet(context)]);
      this.#codec = await openCodec(codec);
      await this.#output.start(microphone !== null, this.#handlers.onProblem);
    } catch (error) {
      microphone?.stop();
      throw error;
    }
    const { onProgress, onStarted, onRecorded, onPacket } = this.#handlers;
    this.#encoder = this.#codec.newEncoder(onPacket);
    this.#loudspeaker = new Loudspeaker(this.#output, this.#codec, {
      onProgress,
      onStarted,
      onRecorded: onRecorded && ((samples, atSample) => onRecorded('output', samples, atSample)),
    });
    this.#take(microphone);
    navigator.mediaDevices?.addEventListener('devicechange', this.#reopen);
  }

  async #ask(choice) {
    Output.prepareFor(true);
    const microphone = await Microphone.ask(choice, {
      onFrame: (samples, atSample) => this.#hear(samples, atSample),
      onEnded: () => this.#lose(microphone),
      onChanged: () => this.#handlers.onMicrophoneChanged(microphone.facts),
    });
    if (microphone.isFallback) {
      this.#handlers.onProblem(
        new ParleyError(
          'microphone_missing',
          `The chosen microphone is not there. "${microphone.facts.label}" is used instead.`,
        ),
      );
    }
    return microphone;
  }

  #take(microphone) {
    this.#microphone?.stop();
    this.#microphone = null;
    this.#peak = 0;
    if (this.#isClosed) {
      microphone?.stop();
      return;
    }
    microphone?.start(this.#output.context, this.#isMuted);
    this.#microphone = microphone;
  }

  #hear(samples, atSample) {
    let peak = 0;
    for (let n = 0; n < samples.length; n += 1) peak = Math.max(peak, Math.abs(samples[n]));
    this.#peak = Math.max(this.#peak, Math.min(1, peak));
    this.#output.observeClock();
    this.#encoder.encode(samples);
    this.#handlers.onRecorded?.('input', samples, atSample);
  }

  #setMuted(isMuted) {
    this.#isMuted = isMuted;
    this.#microphone?.setMuted(isMuted);
  }

  // Unplugged, or taken away by the system: another one takes over, now or once there is one.
  async #lose(microphone) {
    if (this.#microphone !== microphone) return;
    this.#take(null);
    const error = await this.#reopen();
    if (error) this.#handlers.onMicrophoneLost(error);
  }

  // Asks again for a microphone that is wanted and gone. What went wrong, or null.
  #reopen = async () => {
    if (this.#isClosed || this.#isReopening || this.#choice === false || this.#microphone) return null;
    this.#isReopening = true;
    try {
      this.#take(await this.#ask(this.#choice));
      if (this.#microphone) this.#handlers.onMicrophoneChanged(this.#microphone.facts);
      return null;
    } catch (error) {
      return error;
    } finally {
      this.#isReopening = false;
    }
  };
}
