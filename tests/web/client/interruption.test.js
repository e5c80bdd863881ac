import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

import {
  FakeSocket,
  FakeSound,
  added,
  assistant,
  audio,
  audioDone,
  begin,
  created,
  done,
  fakeTime,
  itemDone,
  pass,
  settle,
  speaking,
  state,
  words,
} from './fakes.js';

fakeTime();
beforeEach(() => {
  FakeSocket.all.splice(0);
  FakeSound.opened.splice(0);
});

// A conversation in which the agent speaks, and so much of it has been heard.
async function hearing(playedMs = 120) {
  const opened = await begin();
  opened.socket.tell(...speaking(), state('speaking'));
  opened.sound.progress('item_a', playedMs);
  opened.socket.sent.splice(0);
  return opened;
}

const short = ({ type, item_id: id, played_ms: playedMs, audio_end_ms: endMs }) =>
  [type, id, playedMs ?? endMs].filter((part) => part !== undefined);
const took = (socket) => socket.took().map(short);
const speech = { type: 'input_audio_buffer.speech_started', item_id: 'u' };

test('speech over the agent silences it, and the server learns what was heard', async () => {
  const { parley, socket, sound } = await hearing();
  socket.tell(speech, done('resp_1', 'cancelled'));
  assert.equal(sound.clears.length, 1);
  await sound.cleared('item_a', 130.7);
  assert.deepEqual(took(socket), [
    ['parley.playback', 'item_a', 130],
    ['conversation.item.truncate', 'item_a', 130],
  ]);
  const [item] = parley.items;
  assert.deepEqual([item.text, item.heard, item.cut], ['Hello there', 11, 11]);
  await parley.close();
});

test('after a truncation the item is asked for, and an error about it is no problem', async () => {
  const { parley, socket } = await hearing();
  socket.tell({ type: 'conversation.item.truncated', item_id: 'item_a', audio_end_ms: 130 });
  const [{ type, event_id: id }] = socket.took();
  assert.equal(type, 'conversation.item.retrieve');
  socket.tell({ type: 'error', error: { code: 'item_retrieve_invalid_item_id', message: 'Gone.', event_id: id } });
  assert.deepEqual(parley.told('problem'), []);
  await parley.close();
});

test('a response that is cancelled in any other way is silent at once, too', async () => {
  const { parley, socket, sound } = await hearing();
  socket.tell(done('resp_1', 'cancelled'));
  await sound.cleared('item_a', 130);
  assert.deepEqual([parley.items[0].cut, took(socket).length], [11, 2]);
  await parley.close();
});

test('where speech does not end a reply, it goes on', async () => {
  const { parley, socket, sound } = await hearing();
  const detection = { type: 'server_vad', interrupt_response: false };
  socket.tell({ type: 'session.updated', session: { audio: { input: { turn_detection: detection } } } }, speech);
  assert.equal(sound.clears.length, 0);
  await parley.close();
});

test('interrupt: silence, cancel, and the cut where it was heard', async () => {
  const { parley, socket, sound } = await hearing(90);
  parley.interrupt();
  assert.deepEqual(took(socket), [['parley.playback', 'item_a', 90], ['response.cancel']]);
  await sound.cleared('item_a', 95);
  assert.deepEqual(took(socket).slice(2), [
    ['parley.playback', 'item_a', 95],
    ['conversation.item.truncate', 'item_a', 95],
  ]);
  assert.deepEqual([parley.items[0].cut, parley.items[0].heard], [6, 6]);
  await parley.close();
});

test('after the silence nothing speaks, whatever the server believes', async () => {
  const { parley, socket, sound } = await hearing(90);
  socket.tell(audioDone('resp_1', 'item_a'), done('resp_1')); // all was sent ahead
  parley.interrupt();
  sound.progress('item_a', 95, { isPlaying: false });
  await sound.cleared('item_a', 95);
  assert.equal(parley.state, 'listening');
  parley.say('And now?');
  socket.tell(state('thinking'));
  assert.equal(parley.state, 'thinking');
  socket.tell(...speaking('resp_2', 'item_b', 'item_a'), state('speaking'));
  assert.equal(parley.state, 'speaking');
  parley.interrupt();
  assert.equal(parley.state, 'listening');
  socket.tell(done('resp_2', 'cancelled'), ...speaking('resp_3', 'item_c', 'item_b'));
  assert.equal(parley.state, 'speaking'); // as it was told before, and is true again
  await parley.close();
});

test('an answer that stops in the middle is awaited, and no longer said', async () => {
  const { parley, sound, socket } = await hearing(90);
  sound.progress('item_a', 200, { isPlaying: false });
  await pass(999);
  assert.equal(parley.state, 'speaking'); // a gap
  await pass(1);
  assert.equal(parley.state, 'thinking');
  sound.progress('item_a', 210);
  assert.equal(parley.state, 'speaking');
  socket.tell(audioDone('resp_1', 'item_a'), done('resp_1'));
  sound.progress('item_a', 400, { isPlaying: false });
  await pass(2000);
  assert.equal(parley.state, 'speaking'); // it is whole: the server tells when it is over
  await parley.close();
});

test('interrupt with nothing to interrupt does nothing', async () => {
  const { parley, socket, sound } = await begin();
  socket.sent.splice(0);
  parley.interrupt();
  assert.deepEqual([took(socket), sound.clears.length], [[], 0]);
  socket.tell(created('r'));
  parley.interrupt();
  assert.deepEqual([took(socket), sound.clears.length], [[['response.cancel']], 0]);
  const { event_id: id } = socket.sent.at(-1);
  socket.tell({ type: 'error', error: { code: 'response_cancel_not_active', message: 'None.', event_id: id } });
  assert.deepEqual(parley.told('problem'), []);
  await parley.close();
});

test('sound of a cancelled response that comes late is not played', async () => {
  const { parley, socket, sound } = await hearing();
  parley.interrupt();
  const before = sound.played.length;
  socket.tell(audio('resp_1', 'item_a'), words('resp_1', 'item_a', ' late'));
  await sound.cleared('item_a', 130);
  socket.tell(audio('resp_1', 'item_a'), audioDone('resp_1', 'item_a'), done('resp_1', 'cancelled'));
  assert.equal(sound.played.length, before);
  assert.equal(sound.clears.length, 0);
  socket.tell(created('resp_2'), added(assistant('item_b'), 'item_a'), audio('resp_2', 'item_b'));
  assert.equal(sound.played.at(-1)[0], 'item_b');
  await parley.close();
});

test('an item that begins before the loudspeaker has answered is not cut', async () => {
  const { parley, socket, sound } = await hearing();
  parley.interrupt();
  socket.tell(done('resp_1', 'cancelled'), ...speaking('resp_2', 'item_b', 'item_a'));
  sound.progress('item_b', 40);
  socket.tell(state('listening'));
  await sound.cleared('item_a', 130);
  const [a, b] = parley.items;
  assert.deepEqual([a.cut, b.cut, b.heard], [11, null, 6]);
  assert.deepEqual(took(socket).filter(([, id]) => id === 'item_b').length, 0);
  assert.equal(parley.state, 'speaking');
  await parley.close();
});

test('the last report of what is being silenced does not make it heard out', async () => {
  const { parley, socket, sound } = await hearing(50);
  socket.tell(audioDone('resp_1', 'item_a'), done('resp_1'));
  parley.interrupt();
  sound.progress('item_a', 60, { isPlaying: false });
  await sound.cleared('item_a', 60);
  assert.deepEqual([parley.items[0].heard, parley.items[0].cut], [6, 6]);
  assert.equal(socket.took('response.cancel').length, 0);
  await parley.close();
});

test('what waited behind the item that was silenced was not heard at all', async () => {
  const { parley, socket, sound } = await hearing(50);
  socket.tell(audioDone('resp_1', 'item_a'), done('resp_1'), ...speaking('resp_2', 'item_b', 'item_a'));
  socket.sent.splice(0);
  socket.tell(speech);
  await sound.cleared('item_a', 60);
  assert.deepEqual(parley.items.slice(0, 2).map(({ cut }) => cut), [6, 0]);
  assert.deepEqual(took(socket).filter(([type]) => type === 'conversation.item.truncate'), [
    ['conversation.item.truncate', 'item_a', 60],
    ['conversation.item.truncate', 'item_b', 0],
  ]);
  await parley.close();
});

test('what plays outside of the conversation is silenced too, once', async () => {
  const { parley, socket, sound } = await begin();
  socket.tell(created('r'));
  sound.progress('aside', 50);
  socket.sent.splice(0);
  socket.tell(speech);
  await sound.cleared('aside', 60);
  socket.tell(done('r', 'cancelled'));
  assert.deepEqual([sound.clears.length, took(socket)], [0, []]);
  await parley.close();
});

test('what was heard to its end is not truncated', async () => {
  const { parley, socket, sound } = await hearing(50);
  socket.tell(audioDone('resp_1', 'item_a'), done('resp_1'));
  sound.progress('item_a', 200, { isPlaying: false });
  socket.tell(speech);
  assert.equal(sound.clears.length, 0);
  assert.deepEqual(took(socket), [['parley.playback', 'item_a', 200]]);
  assert.deepEqual([parley.items[0].heard, parley.items[0].cut], [11, null]);
  await parley.close();
});

test('no more is told as heard than has come', async () => {
  const { parley, socket, sound } = await hearing();
  socket.tell(speech);
  await sound.cleared('item_a', 205);
  assert.deepEqual(took(socket).at(-1), ['conversation.item.truncate', 'item_a', 200]);
  await parley.close();
});

test('say while the agent speaks: silence, the text, and its answer', async () => {
  const { parley, socket, sound } = await hearing();
  parley.say('Stop. Another question.');
  assert.deepEqual(socket.types, ['parley.playback', 'response.cancel', 'conversation.item.create', 'response.create']);
  const [{ item }] = socket.took('conversation.item.create');
  assert.deepEqual(item.content, [{ type: 'input_text', text: 'Stop. Another question.' }]);
  assert.equal(sound.clears.length, 1);
  socket.tell(done('resp_1', 'cancelled'), added({ ...item, status: 'completed' }, 'item_a'));
  await sound.cleared('item_a', 130);
  assert.deepEqual(parley.items.map(({ text, isTyped }) => [text, isTyped]), [
    ['Hello there', false],
    ['Stop. Another question.', true],
  ]);
  await parley.close();
});

test('say that meets a response which has just begun asks again behind it', async () => {
  const { parley, socket } = await begin();
  parley.say('hello');
  parley.say('   ');
  assert.equal(socket.took('conversation.item.create').length, 1);
  const { event_id: id } = socket.took('response.create')[0];
  const error = { code: 'conversation_already_has_active_response', message: 'Busy.', event_id: id };
  socket.tell(created('r'), { type: 'error', error }, done('r'));
  assert.equal(socket.took('response.create').length, 2);
  assert.deepEqual(parley.told('problem'), []);
  await parley.close();
});

test('what has been played is told four times a second, and at the end', async () => {
  const { parley, socket, sound } = await begin();
  const frames = Array.from({ length: 50 }, () => audio('r', 'a'));
  socket.tell(created('r'), added(assistant('a'), null), words('r', 'a', 'Word'), ...frames, audioDone('r', 'a'));
  socket.sent.splice(0);
  for (let ms = 50; ms < 1000; ms += 50) sound.progress('a', ms);
  sound.progress('a', 1000, { isPlaying: false });
  sound.progress('a', 1000, { isPlaying: false });
  assert.deepEqual(took(socket).map(([, , ms]) => ms), [250, 500, 750, 1000]);
  await parley.close();
});

test('an item that another one follows without a pause is told to its end', async () => {
  const { parley, socket, sound } = await hearing(150);
  socket.tell(audioDone('resp_1', 'item_a'), itemDone(assistant('item_a', 'Hello there'), null), done('resp_1'));
  socket.tell(...speaking('resp_2', 'item_b', 'item_a'));
  sound.progress('item_b', 10);
  assert.deepEqual(took(socket)[0], ['parley.playback', 'item_a', 200]);
  assert.equal(parley.items[0].heard, 11);
  await parley.close();
});

test('a loudspeaker that answers after the end harms nothing', async () => {
  const { parley, socket, sound } = await hearing();
  parley.interrupt();
  await parley.close();
  await settle();
  assert.equal(sound.clears.length, 0);
  assert.equal(socket.took('conversation.item.truncate').length, 0);
  assert.notEqual(parley.items[0].cut, null);
});
