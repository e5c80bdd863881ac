// Push-to-talk: while the space bar, or the button on a phone, is held, a muted microphone is open.
//
// The space bar talks wherever the keyboard's focus is, save where it writes or chooses. On a button
// a tap of it still presses the button: only what is held for longer talks. Enter always presses.

const WRITING = 'input, textarea, select, audio, video, [contenteditable]';
const PRESSABLE = 'button, summary';
const TAP_MS = 250; // longer than a press of a key that is meant as a press, shorter than a word

export class PushToTalk {
  #button;
  #isWanted;
  #onPress;
  #onRelease;
  #isHeld = false;
  #tap = null; // {target, timer}: the space bar is down on a button, for less than TAP_MS

  // isWanted(): whether holding would do something now.
  constructor({ button, isWanted, onPress, onRelease }) {
    this.#button = button;
    this.#isWanted = isWanted;
    this.#onPress = onPress;
    this.#onRelease = onRelease;
    addEventListener('keydown', (event) => this.#noteKey(event));
    addEventListener('keyup', (event) => {
      if (event.code !== 'Space' || (!this.#isHeld && !this.#tap)) return;
      event.preventDefault();
      const tapped = this.#tap?.target;
      this.#release();
      tapped?.click();
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
    if (event.target.closest?.(WRITING) || document.querySelector('dialog[open]')) return;
    if (!this.#isHeld && !this.#tap && !this.#isWanted()) return;
    event.preventDefault(); // neither scrolls the page nor clicks
    if (event.repeat || this.#tap) return;
    const target = event.target.closest?.(PRESSABLE);
    if (!target || target === this.#button) this.#press();
    else this.#tap = { target, timer: setTimeout(() => this.#press(), TAP_MS) };
  }

  #press() {
    this.#forgetTap();
    if (this.#isHeld || !this.#isWanted()) return;
    this.#isHeld = true;
    this.#button.classList.add('is-held');
    this.#onPress();
  }

  #release() {
    this.#forgetTap();
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#button.classList.remove('is-held');
    this.#onRelease();
  }

  #forgetTap() {
    clearTimeout(this.#tap?.timer);
    this.#tap = null;
  }
}
