import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

import { Conversation } from '../../../web/client/conversation.js';
import * as wire from './fakes.js';

const { added, answer, assistant, audio, audioDone, call, itemDone, spoken, state, typed, words } = wire;

let nowMs;
let log;
let conversation;

beforeEach(() => {
  nowMs = 1000;
  log = [];
  conversation = new Conversation({
    onItem: (item, isNew) => log.push([isNew ? 'new' : 'changed', item.id]),
    onRemoved: (id) => log.push(['removed', id]),
    onHeard: (item) => log.push(['heard', item.id, item.heard]),
    onFailed: (error) => log.push(['failed', error.message]),
    now: () => nowMs,
  });
});

const take = (...events) => events.forEach((event) => conversation.take(event));
const ids = () => conversation.items.map(({ id }) => id);
const started = (id) => ({ type: 'input_audio_buffer.speech_started', item_id: id });
const stopped = (id) => ({ type: 'input_audio_buffer.speech_stopped', item_id: id });
const committed = (id, previous) => ({
  type: 'input_audio_buffer.committed',
  item_id: id,
  previous_item_id: previous,
});
const transcribed = (id, kind, more) => ({
  type: `conversation.item.input_audio_transcription.${kind}`,
  item_id: id,
  ...more,
});
const glimpse = (id, transcript) => ({ type: 'parley.transcript', item_id: id, transcript });

test('a spoken turn waits, is seen as it is heard, and stands', () => {
  take(started('u'));
  const item = conversation.get('u');
  assert.deepEqual([item.role, item.isWaiting, item.at], ['user', true, 1000]);
  take(glimpse('u', 'what is'), glimpse('u', 'what it is'));
  assert.deepEqual([item.text, item.isWaiting, item.isInterim, item.heard], ['what it is', false, true, 10]);
  take(stopped('u'), committed('u', null), added(spoken('u'), null), itemDone(spoken('u'), null));
  assert.equal(item.text, 'what it is');
  take(transcribed('u', 'completed', { transcript: ' What is it? ' }));
  take(glimpse('u', 'late'));
  assert.deepEqual([item.text, item.isInterim, item.isTyped], ['What is it?', false, false]);
  assert.equal(conversation.items[0], item);
  assert.deepEqual(log.filter(([what]) => what === 'new'), [['new', 'u']]);
});

test('a final text that comes in deltas replaces what was glimpsed', () => {
  take(started('u'), glimpse('u', 'wha'), stopped('u'), committed('u', null), added(spoken('u'), null));
  take(transcribed('u', 'delta', { delta: 'What ' }), transcribed('u', 'delta', { delta: 'is it?' }));
  assert.deepEqual([conversation.get('u').text, conversation.get('u').isInterim], ['What is it?', true]);
});

for (const after of ['listening', 'speaking']) {
  test(`a turn without words vanishes when the server is ${after} again`, () => {
    take(started('u'), glimpse('u', 'hm'), state('hearing'), stopped('u'), state('thinking'));
    assert.deepEqual(ids(), ['u']);
    take(state(after));
    assert.deepEqual(ids(), []);
    assert.deepEqual(log.at(-1), ['removed', 'u']);
  });
}

test('a turn that is still spoken, or committed, does not vanish', () => {
  take(started('u'), state('listening'));
  assert.deepEqual(ids(), ['u']);
  take(stopped('u'), committed('u', null), state('listening'));
  conversation.lose();
  assert.deepEqual(ids(), ['u']);
});

test('a turn of which nothing is told vanishes with the next, with the socket, or after long', () => {
  take(started('u'), stopped('u'), started('v'));
  assert.deepEqual(ids(), ['v']);
  conversation.lose();
  assert.deepEqual(ids(), []);
  take(started('w'), stopped('w'));
  nowMs += 11999;
  conversation.dropLate();
  assert.deepEqual(ids(), ['w']);
  nowMs += 1;
  conversation.dropLate();
  assert.deepEqual(ids(), []);
});

test('a committed turn whose text is empty is not shown, and keeps its place', () => {
  take(committed('u', null), added(spoken('u'), null), transcribed('u', 'completed', { transcript: ' ' }));
  take(added(assistant('a'), 'u'));
  assert.deepEqual(ids(), ['a']);
  take(added(typed('first', 'x'), null), added(typed('behind', 'y'), 'u'));
  assert.deepEqual(ids(), ['first', 'behind', 'a']);
});

test('speech that was not understood says so', () => {
  take(committed('u', null), transcribed('u', 'failed', { error: { message: 'The recogniser is gone.' } }));
  assert.deepEqual([conversation.get('u').text, conversation.get('u').isWaiting], ['(not understood)', false]);
  assert.deepEqual(log.at(-1), ['failed', 'The recogniser is gone.']);
});

test('items stand where the wire places them', () => {
  take(started('u'), added(assistant('a'), null));
  assert.deepEqual(ids(), ['a', 'u']);
  take(added(typed('b', 'text'), 'a'), committed('u', 'b'), added(spoken('u'), 'b'));
  assert.deepEqual(ids(), ['a', 'b', 'u']);
  take(added(typed('c', 'x'), 'never heard of'), added(typed('d', 'x')));
  assert.deepEqual(ids(), ['a', 'b', 'u', 'c', 'd']);
  take({ type: 'conversation.item.deleted', item_id: 'b' });
  assert.deepEqual(ids(), ['a', 'u', 'c', 'd']);
  assert.equal(conversation.get('d').isTyped, true);
});

test('words are heard when their audio has been played', () => {
  take(...wire.speaking());
  const item = conversation.get('item_a');
  assert.deepEqual([item.text, item.heard, item.responseId], ['Hello there', 0, 'resp_1']);
  conversation.played('item_a', 0);
  assert.equal(item.heard, 0);
  conversation.played('item_a', 1);
  assert.equal(item.heard, 6);
  conversation.played('item_a', 100);
  assert.equal(item.heard, 6);
  conversation.played('item_a', 101);
  assert.equal(item.heard, 11);
  conversation.played('item_a', 50);
  assert.equal(item.heard, 11);
  assert.deepEqual(log.filter(([what]) => what === 'heard'), [['heard', 'item_a', 6], ['heard', 'item_a', 11]]);
});

test('text behind the last sound is heard with its end, and not before all has come', () => {
  take(...wire.speaking(), words('resp_1', 'item_a', ' ...'));
  const item = conversation.get('item_a');
  conversation.played('item_a', 200, true);
  assert.equal(item.heard, 11);
  take(audioDone('resp_1', 'item_a'));
  conversation.played('item_a', 180);
  assert.equal(item.heard, 15);
  assert.deepEqual(conversation.unheard(), []);
});

test('what is cut off stays cut, whatever is still told', () => {
  take(...wire.speaking());
  const item = conversation.get('item_a');
  assert.deepEqual(conversation.unheard(), ['item_a']);
  assert.equal(conversation.cut('item_a', 60), true);
  assert.deepEqual([item.cut, item.heard], [6, 6]);
  conversation.played('item_a', 200, true);
  take(words('resp_1', 'item_a', ' late'), itemDone(assistant('item_a', 'Hello there late', 'incomplete')));
  assert.deepEqual([item.cut, item.heard, item.text], [6, 6, 'Hello there late']);
  assert.deepEqual(conversation.unheard(), []);
});

test('what was heard out is not cut off', () => {
  take(...wire.speaking(), audioDone('resp_1', 'item_a'));
  assert.equal(conversation.cut('item_a', 190), false);
  assert.equal(conversation.get('item_a').cut, null);
});

test('after a truncation history is shown, and what lies beyond it stays to be struck', () => {
  take(...wire.speaking());
  conversation.cut('item_a', 150);
  const retrieved = (text) => ({ type: 'conversation.item.retrieved', item: assistant('item_a', text, 'incomplete') });
  take(retrieved('Hello'));
  const item = conversation.get('item_a');
  assert.deepEqual([item.text, item.cut, item.heard], ['Hello there', 5, 5]);
  take(retrieved('Other words'));
  assert.deepEqual([item.text, item.cut], ['Other words', 11]);
});

test('an answer that was stopped before its first word is not shown', () => {
  take(added(assistant('a'), null));
  assert.deepEqual(ids(), ['a']);
  take(itemDone(assistant('a', '', 'incomplete'), null));
  assert.deepEqual(ids(), []);
});

test('an answer in writing is read at once', () => {
  take(added(assistant('a'), null), { type: 'response.output_text.delta', item_id: 'a', delta: 'Hi' });
  assert.equal(conversation.get('a').heard, 2);
  assert.deepEqual(conversation.unheard(), []);
});

test('at a loss an answer ends where it is, and one without a word is not shown', () => {
  take(...wire.speaking(), added(assistant('b'), 'item_a'));
  conversation.lose();
  assert.deepEqual(ids(), ['item_a']);
  assert.equal(conversation.get('item_a').isInterim, false);
});

test('items that come anew after a loss do not double, and are what was heard', () => {
  take(added(typed('u', 'question'), null), ...wire.speaking('resp_1', 'item_a', 'u'));
  conversation.cut('item_a', 150);
  const before = conversation.items;
  const past = assistant('item_a', 'Hello', 'incomplete');
  take(added(typed('u', 'question'), null), itemDone(typed('u', 'question'), null));
  take(added(past, 'u'), itemDone(past, 'u'));
  assert.deepEqual(conversation.items, before);
  assert.deepEqual([before[1].text, before[1].cut, before[1].heard], ['Hello there', 5, 5]);
});

test('after a reload the past is heard, but for what was cut', () => {
  const whole = assistant('a', 'A whole answer.');
  const broken = assistant('b', 'A broken', 'incomplete');
  take(added(spoken('u', 'question'), null), added(whole, 'u'), itemDone(whole, 'u'), added(broken, 'a'));
  const [u, a, b] = conversation.items;
  assert.deepEqual([u.text, u.isTyped, u.isWaiting], ['question', false, false]);
  assert.deepEqual([a.heard, a.cut, a.isInterim], [15, null, false]);
  assert.deepEqual([b.heard, b.cut], [8, 8]);
});

test('a function call is written, runs, and has its output; the output has a place of its own', () => {
  take(added(call('c', 'weather', '', 'in_progress'), null));
  const item = conversation.get('c');
  assert.deepEqual([item.kind, item.role, item.call.status], ['call', 'assistant', 'writing']);
  const where = { item_id: 'c', call_id: 'call_c' };
  take({ type: 'response.function_call_arguments.delta', ...where, delta: '{"a"' });
  assert.equal(item.call.arguments, '{"a"');
  take({ type: 'response.function_call_arguments.done', ...where, name: 'weather', arguments: '{"a":1}' });
  take(wire.outputDone('r', call('c', 'weather', '{"a":1}')), itemDone(call('c', 'weather', '{"a":1}'), null));
  assert.deepEqual(item.call, {
    id: 'call_c',
    name: 'weather',
    arguments: '{"a":1}',
    output: null,
    status: 'running',
  });
  take(added(call('d', 'weather'), 'c'), added(answer('o', 'call_c', 'rain'), 'd'), added(assistant('a', 'x'), 'o'));
  assert.deepEqual([item.call.status, item.call.output], ['done', 'rain']);
  assert.deepEqual(ids(), ['c', 'd', 'a']);
});

test('a call that was broken off has failed', () => {
  take(added(call('c', 'weather', '', 'in_progress'), null), itemDone(call('c', 'weather', '{"a', 'incomplete'), null));
  assert.equal(conversation.get('c').call.status, 'failed');
});

test('events of items that nobody knows change nothing', () => {
  take(words('r', 'x', 'hi'), audio('r', 'x'), audioDone('r', 'x'), glimpse('x', 'hi'), stopped('x'));
  take(itemDone(assistant('x', 'hi')), { type: 'conversation.item.retrieved', item: assistant('x', 'hi') });
  take({ type: 'conversation.item.deleted', item_id: 'x' }, { type: 'something.new' });
  conversation.played('x', 100);
  assert.equal(conversation.cut('x', 1), false);
  assert.deepEqual([ids(), log], [[], []]);
});
