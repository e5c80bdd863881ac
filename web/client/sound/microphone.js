// The microphone: asked for, said in plain words when it cannot be had, and cut into frames.

import { ParleyError } from '../errors.js';

const WORKLET = new URL('./capture-worklet.js', import.meta.url);
// What makes an open loudspeaker bearable; what the device really does is in `facts`.
const WANTED = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };

export class Microphone {
  #node = null;
  #source = null;
  #onFrame;
  #onChanged;

  static addWorklet(context) {
    return context.audioWorklet.addModule(WORKLET);
  }

  // Asks the user. choice: true for the default one, or {deviceId}. Throws ParleyError.
  // handlers: onFrame(Float32Array of 20 ms at 24 kHz, atSample), onEnded(), onChanged().
  static async ask(choice, handlers) {
    if (!navigator.mediaDevices?.getUserMedia) {
      throw new ParleyError(
        'microphone_insecure',
        'The microphone can be used only over https or on localhost. Open this page at such an address.',
      );
    }
    const deviceId = choice?.deviceId || null;
    try {
      return new Microphone(await getStream(deviceId), false, handlers);
    } catch (error) {
      if (!deviceId || !isMissing(error)) throw explain(error);
    }
    try {
      return new Microphone(await getStream(null), true, handlers);
    } catch (error) {
      throw explain(error);
    }
  }

  // [{deviceId, label}]; labels are empty until the user has allowed the microphone once.
  static async list() {
    const devices = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
    return devices
      .filter(({ kind }) => kind === 'audioinput')
      .map(({ deviceId, label }) => ({ deviceId, label }));
  }

  constructor(stream, isFallback, { onFrame, onEnded, onChanged }) {
    this.stream = stream;
    this.isFallback = isFallback; // the chosen device is not there: this is the default one
    this.#onFrame = onFrame;
    this.#onChanged = onChanged;
    this.track.onended = onEnded;
    this.track.onmute = () => this.#onChanged();
    this.track.onunmute = () => this.#onChanged();
  }

  get track() {
    return this.stream.getAudioTracks()[0];
  }

  // What is really used, which may not be what was asked for.
  get facts() {
    const { deviceId, echoCancellation, noiseSuppression, autoGainControl, sampleRate } =
      this.track.getSettings();
    return {
      label: this.track.label,
      deviceId: deviceId ?? '',
      settings: { echoCancellation, noiseSuppression, autoGainControl, sampleRate },
      isMutedBySystem: this.track.muted, // by a switch, a call, another program
    };
  }

  start(context, isMuted) {
    this.#source = context.createMediaStreamSource(this.stream);
    this.#node = new AudioWorkletNode(context, 'parley-capture', {
      channelCount: 1, // a stereo device is mixed down
      channelCountMode: 'explicit',
      processorOptions: { isMuted },
    });
    this.#node.port.onmessage = ({ data }) => this.#onFrame(data.samples, data.atSample);
    this.#source.connect(this.#node);
    this.#node.connect(context.destination); // silent; a node that leads nowhere may not be run
  }

  setMuted(isMuted) {
    this.#node.port.postMessage({ isMuted });
  }

  stop() {
    this.track.onended = null;
    this.track.onmute = null;
    this.track.onunmute = null;
    for (const track of this.stream.getTracks()) track.stop();
    if (!this.#node) return;
    this.#node.port.onmessage = null;
    this.#node.port.postMessage({ close: true });
    this.#source.disconnect();
    this.#node.disconnect();
  }
}

function getStream(deviceId) {
  const device = deviceId ? { deviceId: { exact: deviceId } } : {};
  return navigator.mediaDevices.getUserMedia({ audio: { ...WANTED, ...device } });
}

function isMissing(error) {
  return error.name === 'OverconstrainedError' || error.name === 'NotFoundError';
}

function explain(error) {
  switch (error.name) {
    case 'NotAllowedError':
    case 'SecurityError':
      return new ParleyError(
        'microphone_denied',
        'The microphone is blocked. Allow it in the address bar of the browser, then try again.',
      );
    case 'NotFoundError':
    case 'OverconstrainedError':
      return new ParleyError(
        'microphone_missing',
        'No microphone was found. Plug one in, then try again.',
      );
    case 'NotReadableError':
    case 'AbortError':
      return new ParleyError(
        'microphone_busy',
        'The microphone is in use by another program. Close that one, then try again.',
      );
    default:
      return new ParleyError(
        'microphone_failed',
        `The microphone cannot be used: ${error.message || error.name}. Try another one in the settings.`,
      );
  }
}
