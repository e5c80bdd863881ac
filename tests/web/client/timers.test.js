// With real timers, which none of the other tests has: after the end none is left.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FakeSocket, begin, newParley, settle, speaking } from './fakes.js';

const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

async function open() {
  const { parley, socket, sound } = await begin();
  socket.tell(...speaking());
  sound.progress('item_a', 50);
  sound.progress('item_a', 60, { isPlaying: false }); // it ran dry
  socket.tell({ type: 'input_audio_buffer.speech_started', item_id: 'u' });
  socket.tell({ type: 'input_audio_buffer.speech_stopped', item_id: 'u' });
  return parley;
}

async function connecting() {
  const parley = newParley();
  parley.connect().catch(() => {});
  await settle();
  return parley;
}

async function lost() {
  const parley = await open();
  FakeSocket.last.end(1006);
  return parley;
}

for (const begun of [open, connecting, lost]) {
  test(`close clears every timer: ${begun.name}`, async () => {
    const before = timers();
    const parley = await begun();
    assert.ok(timers() > before);
    await parley.close();
    await settle();
    assert.equal(timers(), before);
  });
}

test('so does the end that the server makes', async () => {
  const before = timers();
  await open();
  FakeSocket.last.end(1001, 'Over.');
  await settle();
  assert.equal(timers(), before);
});
