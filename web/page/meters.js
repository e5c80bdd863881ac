// Live level meters: how loud the user and the agent are, drawn once a frame while a conversation runs.

const FLOOR_DB = -54; // quieter than a quiet room: the meter's zero
const FALL_PER_S = 2.4; // of the full scale: falls slower than speech, so that it can be read
const MS_PER_S = 1000;

export class Meters {
  #bars;
  #glow;
  #read;
  #shown = { input: 0, output: 0 };
  #frame = 0;
  #lastMs = 0;

  // bars: {input, output}: elements that are scaled; glow: elements that get --level;
  // read() -> {input, output} | null
  constructor({ bars, glow, read }) {
    this.#bars = bars;
    this.#glow = glow;
    this.#read = read;
  }

  start() {
    if (this.#frame) return;
    this.#lastMs = performance.now();
    this.#frame = requestAnimationFrame((nowMs) => this.#draw(nowMs));
  }

  stop() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#show('input', 0);
    this.#show('output', 0);
  }

  #draw(nowMs) {
    const levels = this.#read() ?? { input: 0, output: 0 };
    const fall = (FALL_PER_S * Math.max(0, nowMs - this.#lastMs)) / MS_PER_S;
    this.#lastMs = nowMs;
    for (const side of ['input', 'output']) {
      this.#show(side, Math.max(scaleLevel(levels[side]), this.#shown[side] - fall));
    }
    const loudest = Math.max(this.#shown.input, this.#shown.output).toFixed(2);
    for (const element of this.#glow) element.style.setProperty('--level', loudest);
    this.#frame = requestAnimationFrame((nextMs) => this.#draw(nextMs));
  }

  #show(side, level) {
    const next = Math.max(0, level);
    if (next === this.#shown[side]) return;
    this.#shown[side] = next;
    this.#bars[side].style.transform = `scaleX(${next.toFixed(3)})`;
  }
}

// A peak (0..1) on the scale of the ear: decibels above the floor, as 0..1.
export function scaleLevel(peak) {
  if (!(peak > 0)) return 0;
  const db = 20 * Math.log10(Math.min(1, peak));
  return Math.max(0, 1 - db / FLOOR_DB);
}
