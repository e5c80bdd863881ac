// The one AudioContext and the way to the loudspeaker.
//
// Sound leaves through a media element, not through the context's own destination: what a browser's
// echo canceller subtracts from the microphone is what its media elements play. Where the browser
// refuses to start the element, the destination is used: heard, but perhaps heard by the microphone.

import { ParleyError } from '../errors.js';

const START_LIMIT_MS = 1000; // a context that may start has started by then
const ELEMENT_MS = 20; // what the element adds, about two of its buffers: no browser tells it
const MOST_LATENCY_MS = 1000; // more is a clock that means something else
const OBSERVED_MS = 1000; // of looks at the clock: a device that stumbled is followed by then
const GESTURES = ['pointerdown', 'keydown', 'touchend'];

export class Output {
  #element = new Audio();
  #isElementUsed = true;
  #target;
  #isPlaying = null; // a promise: whether the element plays
  #isClosed = false;
  #onBlocked = null;
  #offsets = []; // {atMs, offsetMs}: looks at the clock

  // To be made within the user's gesture, where there is one: it is that which lets sound begin.
  constructor() {
    this.context = new AudioContext({ latencyHint: 'interactive' });
    this.#target = this.context.createMediaStreamDestination();
    this.#element.srcObject = this.#target.stream;
    if (isTouched()) this.#begin(); // `start` looks whether it did
  }

  // Waits until sound can be heard. onBlocked(ParleyError) tells of a later time when it cannot.
  // isCapturing: a page that may listen may also be heard, without a gesture.
  async start(isCapturing, onBlocked) {
    const hasBegun = await within(START_LIMIT_MS, this.#isPlaying);
    if (!hasBegun && (isCapturing || isTouched())) this.#begin();
    await within(START_LIMIT_MS, this.#running());
    if (this.context.state !== 'running') throw blocked();
    this.#isElementUsed = (await within(START_LIMIT_MS, this.#isPlaying ?? this.#play())) ?? false;
    if (!this.#isElementUsed) this.#element.srcObject = null;
    this.#onBlocked = onBlocked;
    this.context.onstatechange = () => this.#revive();
    this.#element.onpause = () => this.#revive();
    document.addEventListener('visibilitychange', this.#revive);
  }

  connect(node) {
    node.connect(this.#isElementUsed ? this.#target : this.context.destination);
  }

  // To be called before a microphone is asked for: by this an iPhone chooses its loudspeaker, and
  // whether a microphone may go with it.
  static prepareFor(isListening) {
    if (!navigator.audioSession) return;
    navigator.audioSession.type = isListening ? 'play-and-record' : 'playback';
  }

  // When what was rendered for a time of the context is heard, as performance.now() counts.
  heardAtMs(timeS) {
    this.observeClock();
    const sorted = this.#offsets.map(({ offsetMs }) => offsetMs).sort((a, b) => a - b);
    const elementMs = this.#isElementUsed ? ELEMENT_MS : 0;
    return timeS * 1000 + sorted[sorted.length >> 1] + elementMs;
  }

  // Notes how far the clock of what is heard is from the page's. On a busy machine one look is tens
  // of milliseconds wrong: the median of the latest is not.
  observeClock() {
    const nowMs = performance.now();
    const isFresh = ({ atMs }) => nowMs - atMs < OBSERVED_MS;
    this.#offsets = this.#offsets.filter(isFresh);
    this.#offsets.push({ atMs: nowMs, offsetMs: this.#offsetMs(nowMs) });
  }

  #offsetMs(nowMs) {
    const { currentTime, outputLatency, baseLatency } = this.context;
    const { contextTime, performanceTime } = this.context.getOutputTimestamp?.() ?? {};
    const offsetMs = performanceTime - contextTime * 1000;
    const latencyMs = offsetMs + currentTime * 1000 - nowMs;
    if (performanceTime > 0 && latencyMs >= 0 && latencyMs < MOST_LATENCY_MS) return offsetMs;
    return nowMs - currentTime * 1000 + (outputLatency || baseLatency || 0) * 1000;
  }

  async close() {
    this.#isClosed = true;
    this.context.onstatechange = null;
    this.#element.onpause = null;
    document.removeEventListener('visibilitychange', this.#revive);
    this.#awaitGesture(false);
    this.#element.pause();
    this.#element.srcObject = null;
    if (this.context.state !== 'closed') await this.context.close();
  }

  #begin() {
    this.context.resume().catch(() => {}); // it tells by its state
    this.#isPlaying = this.#play();
  }

  #running() {
    return new Promise((resolve) => {
      const look = () => this.context.state === 'running' && resolve();
      this.context.onstatechange = look;
      look();
    });
  }

  get #isHeard() {
    return this.context.state === 'running' && !(this.#isElementUsed && this.#element.paused);
  }

  // A call, another program or the system stopped the sound: at once, or with the next gesture.
  #revive = async () => {
    if (this.#isClosed || this.#isHeard) return;
    this.#awaitGesture(true);
    const resumed = this.context.resume().catch(() => {});
    const played = this.#isElementUsed ? this.#play() : null;
    await within(START_LIMIT_MS, Promise.all([resumed, played]));
    if (this.#isClosed) return;
    if (this.#isHeard) this.#awaitGesture(false);
    else if (document.visibilityState === 'visible') this.#onBlocked(blocked());
  };

  #awaitGesture(isAwaited) {
    const change = isAwaited ? 'addEventListener' : 'removeEventListener';
    for (const gesture of GESTURES) document[change](gesture, this.#revive);
  }

  #play() {
    return this.#element.play().then(
      () => true,
      () => false,
    );
  }
}

// Without a gesture, asking a context to resume only earns a warning; where it may, it runs anyway.
function isTouched() {
  return navigator.userActivation?.hasBeenActive ?? true;
}

function blocked() {
  return new ParleyError(
    'sound_blocked',
    'The browser holds the sound back until you press or tap something on the page. Press to hear.',
  );
}

// What a promise gives, or undefined after a time.
function within(limitMs, promise) {
  let timer;
  const limit = new Promise((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}
