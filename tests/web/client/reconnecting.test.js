import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

import {
  FakeSocket,
  FakeSound,
  PCM,
  WELL,
  added,
  assistant,
  audio,
  begin,
  fakeFetch,
  fakeTime,
  newParley,
  pass,
  settle,
  speaking,
  state,
  typed,
} from './fakes.js';

fakeTime();
beforeEach(() => {
  FakeSocket.all.splice(0);
  FakeSound.opened.splice(0);
});

const FORMATS = { audio: { input: { format: PCM }, output: { format: PCM } } };
const answers = { ...WELL };
const fetch = (address) => fakeFetch(answers)(address);
beforeEach(() => Object.assign(answers, WELL));

async function resume(token = 'token_2') {
  FakeSocket.last.greet({ token, session: FORMATS });
  await settle();
}

test('a lost socket is followed by another that goes on', async () => {
  const { parley, socket, sound } = await begin({ fetch });
  socket.end(1006);
  assert.equal(parley.state, 'reconnecting');
  assert.deepEqual(parley.told('reconnecting'), [{ attempt: 1, inMs: 300 }]);
  await pass(299);
  assert.equal(FakeSocket.all.length, 1);
  await pass(1);
  assert.equal(FakeSocket.last.address.searchParams.get('resume'), 'token_1');
  await resume();
  assert.deepEqual([parley.state, parley.resumeToken], ['listening', 'token_2']);
  assert.equal(parley.told('resumed').length, 1);
  assert.deepEqual(FakeSocket.last.types, []);
  sound.handlers.onPacket('AAAA');
  assert.deepEqual(FakeSocket.last.types, ['input_audio_buffer.append']);
  assert.equal(socket.types.includes('input_audio_buffer.append'), false);
  await parley.close();
});

test('what was being heard is silenced at the loss, without a word to the server', async () => {
  const { parley, socket, sound } = await begin({ fetch });
  socket.tell(added(typed('u', 'hi'), null), ...speaking('resp_1', 'item_a', 'u'), state('speaking'));
  sound.progress('item_a', 150);
  socket.tell({ type: 'input_audio_buffer.speech_started', item_id: 'v' });
  socket.end(1006);
  for (; sound.clears.length > 0; ) await sound.cleared('item_a', 150);
  assert.deepEqual(parley.items.map(({ id, cut }) => [id, cut]), [['u', null], ['item_a', 11]]);
  await pass(300);
  await resume();
  const past = assistant('item_a', 'Hello', 'incomplete');
  FakeSocket.last.tell(added(typed('u', 'hi'), null), added(past, 'u'));
  FakeSocket.last.tell(...speaking('resp_2', 'item_b', 'item_a'), state('speaking'));
  assert.deepEqual(parley.items.map(({ id, text, cut }) => [id, text, cut]), [
    ['u', 'hi', null],
    ['item_a', 'Hello there', 5],
    ['item_b', 'Hello there', null],
  ]);
  assert.equal(sound.played.at(-1)[0], 'item_b');
  assert.equal(parley.state, 'speaking');
  await parley.close();
});

test('events of the old socket are ignored', async () => {
  const { parley, socket, sound } = await begin({ fetch });
  const late = socket.onmessage;
  socket.end(1006);
  await pass(300);
  await resume();
  socket.onmessage = null;
  late({ data: JSON.stringify(added(typed('ghost', 'boo'), null)) });
  late({ data: JSON.stringify(audio('r', 'ghost')) });
  socket.end(1006);
  assert.deepEqual([parley.items, sound.played, parley.state], [[], [], 'listening']);
  await parley.close();
});

test('attempts become rarer, also when one is lost before it has begun', async () => {
  answers['/health/ready'] = null;
  const { parley, socket } = await begin({ fetch });
  socket.end(1006);
  for (const ms of [300, 1000, ...Array(19).fill(1500)]) {
    assert.equal(parley.told('reconnecting').at(-1).inMs, ms);
    await pass(ms);
    if (ms === 1000) FakeSocket.last.accept();
    FakeSocket.last.end(1006);
    await settle();
  }
  assert.equal(parley.state, 'reconnecting');
  assert.equal(parley.told('reconnecting').at(-1).inMs, 30000 - 29800);
  await pass(200);
  FakeSocket.last.end(1006);
  await settle();
  const problem = parley.told('problem').at(-1);
  assert.deepEqual([problem.code, problem.isFatal], ['session_over', true]);
  assert.deepEqual([parley.state, parley.told('closed').length, FakeSound.opened[0].isClosed], ['closed', 1, true]);
  const count = FakeSocket.all.length;
  await pass(120000);
  assert.equal(FakeSocket.all.length, count);
});

test('a loss right after a resumption begins anew', async () => {
  const { parley, socket } = await begin({ fetch });
  socket.end(1006);
  await pass(300);
  await resume();
  FakeSocket.last.end(1006);
  assert.deepEqual(parley.told('reconnecting').at(-1), { attempt: 1, inMs: 300 });
  await pass(300);
  assert.equal(FakeSocket.last.address.searchParams.get('resume'), 'token_2');
  await resume('token_3');
  assert.equal(parley.state, 'listening');
  await parley.close();
});

test('a token that is refused is tried for as long as its answer may have been lost', async () => {
  const { parley, socket } = await begin({ fetch });
  socket.end(1006);
  await pass(300);
  FakeSocket.last.end(1006);
  await settle();
  assert.equal(parley.state, 'reconnecting');
  assert.equal(parley.told('reconnecting').at(-1).inMs, 2100, 'no sooner, and no later, can it be known');
  await pass(2100);
  FakeSocket.last.end(1006);
  await settle();
  const problem = parley.told('problem').at(-1);
  assert.deepEqual([parley.state, problem.code, problem.isFatal], ['closed', 'session_over', true]);
  assert.match(problem.message, /restarted/);
});

test('a page whose conversation goes on in another one does not take it back', async () => {
  const { parley, socket } = await begin({ fetch });
  socket.end(4001, 'The session goes on over another connection.');
  await settle();
  assert.deepEqual([parley.state, parley.told('problem').at(-1).code], ['closed', 'session_over']);
  await pass(10000);
  assert.equal(FakeSocket.all.length, 1);
});

test('a message that was too large is a problem with words, and the conversation goes on', async () => {
  const { parley, socket } = await begin({ fetch });
  socket.end(1009, 'message too big');
  const [{ code, message, isFatal }] = parley.told('problem');
  assert.deepEqual([code, isFatal, parley.state], ['too_large', false, 'reconnecting']);
  assert.match(message, /too large/);
  await pass(300);
  await resume();
  assert.equal(parley.state, 'listening');
  await parley.close();
});

test('while an answer is awaited or heard the line is watched more closely, also the next one', async () => {
  const { parley, socket } = await begin({ fetch });
  const pingsIn = async (line) => {
    const before = line.took('parley.ping').length;
    line.tell({ type: 'a.sign' });
    await pass(2000);
    return line.took('parley.ping').length - before;
  };
  assert.equal(await pingsIn(socket), 0);
  socket.tell(state('thinking'));
  assert.equal(await pingsIn(socket), 1);
  socket.end(1006);
  await pass(300);
  await resume();
  FakeSocket.last.tell(state('thinking'));
  assert.equal(await pingsIn(FakeSocket.last), 1);
  FakeSocket.last.tell(state('listening'));
  assert.equal(await pingsIn(FakeSocket.last), 0);
  await parley.close();
});

test('a key that is not good any more is not tried again', async () => {
  const { parley, socket } = await begin({ fetch });
  answers['/v1/models'] = [401, {}];
  socket.end(1006);
  await pass(300);
  FakeSocket.last.end(1006);
  await settle();
  assert.deepEqual([parley.state, parley.told('problem').at(-1).code], ['closed', 'unauthorised']);
});

test('the network is back: no more waiting', async () => {
  const listeners = new Set();
  globalThis.addEventListener = (type, listener) => type === 'online' && listeners.add(listener);
  globalThis.removeEventListener = (_type, listener) => listeners.delete(listener);
  try {
    const { parley, socket } = await begin({ fetch });
    socket.end(1006);
    for (const listener of listeners) listener();
    assert.equal(FakeSocket.all.length, 2);
    await pass(300);
    assert.equal(FakeSocket.all.length, 2);
    // Again, while the dialling hangs.
    for (const listener of listeners) listener();
    await settle();
    assert.equal(FakeSocket.last.closedWith, 1000);
    await pass(0);
    assert.equal(FakeSocket.all.length, 3);
    await resume();
    assert.deepEqual([parley.state, listeners.size], ['listening', 0]);
    await pass(1000);
    assert.equal(FakeSocket.all.length, 3);
    await parley.close();
  } finally {
    delete globalThis.addEventListener;
    delete globalThis.removeEventListener;
  }
});

test('closed while it waits, and while it dials', async () => {
  for (const waitMs of [100, 300]) {
    const { parley, socket } = await begin({ fetch });
    socket.end(1006);
    await pass(waitMs);
    await parley.close();
    const count = FakeSocket.all.length;
    const isDialling = waitMs === 300;
    assert.equal(FakeSocket.last.closedWith, isDialling ? 1000 : null);
    await pass(120000);
    assert.deepEqual([FakeSocket.all.length, parley.state], [count, 'closed']);
    assert.deepEqual(parley.told('closed'), [{ code: 1000, message: null }]);
  }
});

test('what the user writes meanwhile is said on the next socket', async () => {
  const { parley, socket } = await begin({ fetch });
  socket.end(1006);
  parley.say('Are you there?');
  parley.interrupt();
  await pass(300);
  await resume();
  assert.deepEqual(FakeSocket.last.types, ['conversation.item.create', 'response.create']);
  await parley.close();
});

test('a server without resumption loses the conversation with the socket', async () => {
  const parley = newParley({ fetch });
  const connecting = parley.connect();
  await settle();
  FakeSocket.last.greet({ token: null });
  await settle();
  FakeSocket.last.tell({ type: 'session.updated', session: {} });
  await connecting;
  assert.equal(parley.resumeToken, null);
  FakeSocket.last.end(1006);
  await settle();
  assert.deepEqual([parley.state, parley.told('problem').at(-1).code], ['closed', 'unreachable']);
});

test('a loss while the conversation is set up sets it up again', async () => {
  const parley = newParley({ fetch, session: { instructions: 'Be kind.' } });
  const connecting = parley.connect();
  await settle();
  FakeSocket.last.greet();
  await settle();
  FakeSocket.last.end(1006);
  await pass(300);
  await resume();
  const updates = FakeSocket.last.took('session.update').map(({ session }) => session);
  assert.deepEqual([updates[0].audio.input.format, updates[1].instructions], [PCM, 'Be kind.']);
  FakeSocket.last.tell({ type: 'session.updated', session: {} });
  await connecting;
  assert.equal(parley.state, 'listening');
  await parley.close();
});
