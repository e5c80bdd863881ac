// A streaming resampler: a windowed sinc whose phase continues over the borders of its blocks.

const HALF_TAPS = 16; // zero crossings on each side: -80 dB of alias, a third of a millisecond late

export class Resampler {
  constructor(fromHz, toHz) {
    this.step = fromHz / toHz;
    this.cutoff = Math.min(1, toHz / fromHz) * 0.94; // of half the input rate; room for the slope
    this.reach = Math.ceil(HALF_TAPS / this.cutoff);
    this.kept = new Float32Array(2 * this.reach); // silence before the first sample
    this.position = this.reach; // of the next output sample, in samples of `kept` and the block
  }

  // Float32Array in, Float32Array out; samples that need the future wait for the next block.
  push(block) {
    const input = new Float32Array(this.kept.length + block.length);
    input.set(this.kept);
    input.set(block, this.kept.length);
    const last = input.length - 1 - this.reach;
    const output = new Float32Array(Math.max(0, Math.floor((last - this.position) / this.step) + 1));
    for (let n = 0; n < output.length; n += 1) {
      output[n] = this.at(input, this.position);
      this.position += this.step;
    }
    const drop = Math.max(0, Math.floor(this.position) - this.reach);
    this.kept = input.slice(drop);
    this.position -= drop;
    return output;
  }

  at(input, position) {
    const centre = Math.floor(position);
    let sum = 0;
    for (let k = centre - this.reach + 1; k <= centre + this.reach; k += 1) {
      const distance = position - k;
      const x = distance * this.cutoff;
      if (Math.abs(x) >= HALF_TAPS || k < 0 || k >= input.length) continue;
      const window = 0.5 + 0.5 * Math.cos((Math.PI * x) / HALF_TAPS);
      const sinc = x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
      sum += input[k] * sinc * window * this.cutoff;
    }
    return sum;
  }
}
