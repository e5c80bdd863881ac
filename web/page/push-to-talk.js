// Push-to-talk: while the space bar, or the button on a phone, is held, a muted microphone is open.

// Where the space bar has a meaning of its own.
const OCCUPIED = 'input, textarea, select, button, summary, a[href], audio, video, [contenteditable]';

export class PushToTalk {
  #button;
  #isWanted;
  #onPress;
  #onRelease;
  #isHeld = false;

  // isWanted(): whether holding would do something now.
  constructor({ button, isWanted, onPress, onRelease }) {
    this.#button = button;
    this.#isWanted = isWanted;
    this.#onPress = onPress;
    this.#onRelease = onRelease;
    addEventListener('keydown', (event) => this.#noteKey(event));
    addEventListener('keyup', (event) => {
      if (event.code === 'Space' && this.#isHeld) {
        event.preventDefault();
        this.#release();
      }
    });
    // The key's release goes to whatever has the focus then: no window that lost it may stay open-eared.
    addEventListener('blur', () => this.#release());
    document.addEventListener('visibilitychange', () => this.#release());
    button.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      button.setPointerCapture(event.pointerId); // a finger that slips off still holds
      this.#press();
    });
    for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) {
      button.addEventListener(end, () => this.#release());
    }
    button.addEventListener('contextmenu', (event) => event.preventDefault()); // a long press is no menu
  }

  get isHeld() {
    return this.#isHeld;
  }

  #noteKey(event) {
    if (event.code !== 'Space' || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest?.(OCCUPIED) && event.target !== this.#button) return;
    if (document.querySelector('dialog[open]')) return;
    if (!this.#isHeld && !this.#isWanted()) return;
    event.preventDefault(); // neither scrolls the page nor clicks
    if (!event.repeat) this.#press();
  }

  #press() {
    if (this.#isHeld || !this.#isWanted()) return;
    this.#isHeld = true;
    this.#button.classList.add('is-held');
    this.#onPress();
  }

  #release() {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#button.classList.remove('is-held');
    this.#onRelease();
  }
}
