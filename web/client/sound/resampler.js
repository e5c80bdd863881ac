// A streaming resampler: a windowed sinc from a table with one row for every phase that occurs.
//
// The position between input samples is kept as whole numbers, so nothing drifts, and the result
// does not depend on how the input was cut into blocks. An output sample stands at the very time
// of its input: n samples become ceil(n * toHz / fromHz), without delay, once all have been given.

const ZERO_CROSSINGS = 32; // on each side: with the window below, the slope is 0.16 of the band
const WINDOW_BETA = 8; // Kaiser: aliases and images are 80 dB down
const CUTOFF = 0.92; // of the narrower band: its slope ends where the band ends

export class Resampler {
  #rows; // for each phase its taps
  #taps; // in a row
  #up; // phases in one input sample
  #down; // phases from one output sample to the next
  #kept; // input that later output needs as well
  #phase; // of the next output, in phases from the first sample that may be its centre
  #given = 0; // input samples so far
  #made = 0; // output samples so far

  constructor(fromHz, toHz) {
    const common = greatestCommonDivisor(fromHz, toHz);
    this.#up = toHz / common;
    this.#down = fromHz / common;
    const band = Math.min(1, toHz / fromHz) * CUTOFF; // of half the input's rate
    const reach = Math.ceil(ZERO_CROSSINGS / band);
    this.#taps = 2 * reach;
    this.#rows = rowsFor(this.#up, band, reach);
    this.#kept = new Float32Array(reach - 1); // silence before the first sample
    this.#phase = 0;
  }

  // Float32Array in, Float32Array out; samples that need the future wait for the next block.
  push(block) {
    this.#given += block.length;
    return this.#run(block);
  }

  // The samples that waited, as if silence followed. The resampler is used up.
  finish() {
    const wanted = Math.ceil((this.#given * this.#up) / this.#down);
    const rest = wanted - this.#made;
    return this.#run(new Float32Array(this.#taps)).subarray(0, rest);
  }

  #run(block) {
    const taps = this.#taps;
    const input = new Float32Array(this.#kept.length + block.length);
    input.set(this.#kept);
    input.set(block, this.#kept.length);
    const starts = Math.max(0, input.length - taps + 1); // where a row of taps fits in
    const count = Math.max(0, Math.ceil((starts * this.#up - this.#phase) / this.#down));
    const output = new Float32Array(count);
    let start = Math.floor(this.#phase / this.#up);
    let phase = this.#phase % this.#up;
    for (let n = 0; n < count; n += 1) {
      const row = this.#rows[phase];
      let sum = 0;
      for (let k = 0; k < taps; k += 1) sum += input[start + k] * row[k];
      output[n] = sum;
      phase += this.#down;
      while (phase >= this.#up) {
        phase -= this.#up;
        start += 1;
      }
    }
    const drop = Math.min(start, input.length);
    this.#kept = input.slice(drop);
    this.#phase = (start - drop) * this.#up + phase;
    this.#made += count;
    return output;
  }
}

const tables = new Map(); // every item of a conversation needs the same one

function rowsFor(phases, band, reach) {
  const key = `${phases} ${band}`;
  if (!tables.has(key)) {
    const rows = [];
    for (let phase = 0; phase < phases; phase += 1) rows.push(row(phase / phases, band, reach));
    tables.set(key, rows);
  }
  return tables.get(key);
}

// The taps for an output that stands `fraction` behind the middle sample of its 2 * reach ones.
function row(fraction, band, reach) {
  const taps = new Float32Array(2 * reach);
  let sum = 0;
  for (let k = 0; k < taps.length; k += 1) {
    const x = k - (reach - 1) - fraction; // in input samples
    taps[k] = sinc(x * band) * kaiser(x / reach);
    sum += taps[k];
  }
  for (let k = 0; k < taps.length; k += 1) taps[k] /= sum; // no phase is louder than another
  return taps;
}

function sinc(x) {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

function kaiser(x) {
  return Math.abs(x) > 1 ? 0 : bessel(WINDOW_BETA * Math.sqrt(1 - x * x)) / bessel(WINDOW_BETA);
}

// The modified Bessel function of order 0, by its series.
function bessel(x) {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-9; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function greatestCommonDivisor(a, b) {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
