// A recording of one's own voice from the microphone, of at most fifteen seconds.

export const LONGEST_MS = 15000; // as much as a copy gains from
export const SHORTEST_MS = 1000; // the server takes nothing shorter
const BITS_PER_SECOND = 128000; // beyond it nobody hears the coding of a voice
const TOLD_EVERY_MS = 100; // a counter that moves smoothly
const REFUSALS = {
  NotAllowedError: 'The browser may not use the microphone: allow it for this page, then try again.',
  NotFoundError: 'No microphone was found: connect one, then try again.',
  NotReadableError: 'Another program holds the microphone: close it there, then try again.',
};

export class VoiceRecorder {
  #recorder;
  #stream;
  #beganMs = performance.now();
  #ticks;

  // onTime(ms) now and then; stop() or the limit resolves `done` with {recording: Blob, ms}.
  // Rejects with an Error in plain words. microphoneId: '' for the usual one.
  static async start(microphoneId, onTime) {
    // As the voice is: what helps a conversation (removed echo, noise, evened loudness) changes it.
    const audio = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    if (microphoneId) audio.deviceId = { exact: microphoneId };
    try {
      const devices = navigator.mediaDevices; // absent where the page came over plain http
      if (!devices) throw new Error('Browsers give the microphone to https and localhost alone.');
      return new VoiceRecorder(await devices.getUserMedia({ audio }), onTime);
    } catch (error) {
      throw new Error(REFUSALS[error.name] ?? error.message);
    }
  }

  constructor(stream, onTime) {
    this.#stream = stream;
    this.#recorder = new MediaRecorder(stream, { audioBitsPerSecond: BITS_PER_SECOND });
    const parts = [];
    this.#recorder.addEventListener('dataavailable', ({ data }) => parts.push(data));
    this.done = new Promise((resolve) => {
      this.#recorder.addEventListener('stop', () => {
        const ms = Math.min(LONGEST_MS, performance.now() - this.#beganMs);
        this.#release();
        resolve({ recording: new Blob(parts, { type: this.#recorder.mimeType }), ms });
      });
    });
    this.#recorder.start();
    this.#ticks = setInterval(() => {
      const ms = performance.now() - this.#beganMs;
      onTime(Math.min(LONGEST_MS, ms));
      if (ms >= LONGEST_MS) this.stop();
    }, TOLD_EVERY_MS);
  }

  stop() {
    if (this.#recorder.state !== 'inactive') this.#recorder.stop();
  }

  #release() {
    clearInterval(this.#ticks);
    for (const track of this.#stream.getTracks()) track.stop();
  }
}
