import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Recording } from '../../../web/client/recording.js';

const RATE_HZ = 24000;
const constant = (length, value) => new Float32Array(length).fill(value);

async function read(recording) {
  const blob = recording.toBlob();
  assert.equal(blob.type, 'audio/wav');
  const view = new DataView(await blob.arrayBuffer());
  const text = (at) => String.fromCharCode(...[0, 1, 2, 3].map((n) => view.getUint8(at + n)));
  assert.deepEqual([text(0), text(8), text(12), text(36)], ['RIFF', 'WAVE', 'fmt ', 'data']);
  assert.equal(view.getUint32(4, true), view.byteLength - 8);
  assert.equal(view.getUint32(40, true), view.byteLength - 44);
  assert.deepEqual(
    [20, 22, 32, 34].map((at) => view.getUint16(at, true)),
    [1, 2, 4, 16],
  );
  assert.deepEqual([view.getUint32(24, true), view.getUint32(28, true)], [RATE_HZ, RATE_HZ * 4]);
  const length = (view.byteLength - 44) / 4;
  const channel = (side) => Array.from({ length }, (_, n) => view.getInt16(44 + n * 4 + side * 2, true));
  return { left: channel(0), right: channel(1), length };
}

test('an empty recording is a file of no length', async () => {
  assert.equal((await read(new Recording())).length, 0);
});

test('both sides stand on one time line, whatever comes first', async () => {
  const recording = new Recording();
  recording.add('output', constant(1000, -0.5), 50000);
  recording.add('input', constant(1000, 0.5), 49000);
  const { left, right, length } = await read(recording);
  assert.equal(length, 2000);
  assert.deepEqual([left[0], left[999], left[1000]], [16384, 16384, 0]);
  assert.deepEqual([right[999], right[1000], right[1999]], [0, -16383, -16383]);
});

test('blocks whose times are rounded follow each other without gap or overlap', async () => {
  const recording = new Recording();
  const ramp = (from) => Float32Array.from({ length: 480 }, (_, n) => (from + n) / 32767);
  [0, 479, 963, 1440].forEach((at, n) => recording.add('output', ramp(1 + n * 480), at));
  const { right } = await read(recording);
  assert.deepEqual(right, Array.from({ length: 1920 }, (_, n) => n + 1));
});

test('a real gap stays one', async () => {
  const recording = new Recording();
  recording.add('output', constant(480, 0.25), 0);
  recording.add('output', constant(480, 0.25), 2000);
  const { right, length } = await read(recording);
  assert.deepEqual([length, right[479], right[480], right[1999], right[2000]], [2480, 8192, 0, 0, 8192]);
});

test('samples beyond full scale are clipped, not wrapped', async () => {
  const recording = new Recording();
  recording.add('input', Float32Array.from([2, -2, 1, -1]), 0);
  assert.deepEqual((await read(recording)).left, [32767, -32767, 32767, -32767]);
});

test('a file longer than one written piece is whole', async () => {
  const recording = new Recording();
  const second = Float32Array.from({ length: RATE_HZ }, (_, n) => ((n % 100) + 1) / 32767);
  for (let n = 0; n < 21; n += 1) recording.add('input', second, n * RATE_HZ);
  const { left, length } = await read(recording);
  assert.equal(length, 21 * RATE_HZ);
  assert.ok(left.every((sample, n) => sample === (n % 100) + 1));
});

test('of more than it may keep, the oldest is dropped', async () => {
  const recording = new Recording(1000);
  const second = Float32Array.from({ length: RATE_HZ }, (_, n) => (n + 1) / 32767);
  for (let n = 0; n < 30; n += 1) recording.add('input', second.subarray(n * 800, (n + 1) * 800), n * 800);
  recording.add('output', constant(480, 0.5), 0);
  assert.equal(recording.lastsMs, 1000);
  recording.add('input', second.subarray(0, 300), RATE_HZ);
  assert.equal(recording.lastsMs, 1000);
  const { left, right, length } = await read(recording);
  assert.equal(length, RATE_HZ);
  assert.deepEqual([left[0], left.at(-301), left.at(-300), left.at(-1)], [301, RATE_HZ, 1, 300]);
  assert.deepEqual([right[0], right[179], right[180]], [16384, 16384, 0]);
});

test('silence is not kept', () => {
  const recording = new Recording();
  assert.equal(recording.isEmpty, true);
  recording.add('input', constant(480, 0), 0);
  assert.deepEqual([recording.isEmpty, recording.lastsMs], [true, 20]);
  recording.add('input', constant(480, 0.1), 480);
  assert.equal(recording.isEmpty, false);
});
