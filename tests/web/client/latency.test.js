import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Latency, partsOf } from '../../../web/client/latency.js';
import { added, audio, created, done, typed } from './fakes.js';

const figures = (parts) => parts.map(({ ms }) => ms);
const LEDGER = {
  speech_end: 0,
  transcript: 100,
  turn_end: 300,
  committed: 310,
  response_created: 311,
  first_token: 400,
  first_text_to_voice: 450,
  first_audio_made: 600,
  first_audio_sent: 605,
  first_audio_played: 640,
  done: 2000,
};

test('the parts are the gaps between the stations, in the order of showing', () => {
  const parts = partsOf(LEDGER, 12.4, 60.6);
  assert.deepEqual(
    parts.map(({ name }) => name),
    ['end of turn', 'transcript', 'first token', 'first audio', 'network', 'buffer'],
  );
  assert.deepEqual(figures(parts), [211, 100, 89, 205, 12, 61]);
});

test('what was worked on ahead of the end of the turn takes no time after it', () => {
  const drafted = { transcript: 60, first_token: 150, first_text_to_voice: 160, first_audio_made: 220 };
  const ledger = { ...drafted, turn_end: 420, committed: 420, response_created: 420, first_audio_sent: 421 };
  assert.deepEqual(figures(partsOf({ speech_end: 0, ...ledger }, 0, 0)), [200, 60, 90, 71, 0, 0]);
});

test('a typed question counts from its response, and nothing is negative', () => {
  const ledger = { response_created: 0, first_token: 5, first_text_to_voice: 6, first_audio_sent: 20 };
  assert.deepEqual(figures(partsOf(ledger, 0, 0)), [0, 0, 5, 15, 0, 0]);
  assert.deepEqual(figures(partsOf({ transcript: -30, turn_end: 10 }, 0, 0)), [10, 0, 0, 0, 0, 0]);
  assert.deepEqual(figures(partsOf({}, 0, 0)), [0, 0, 0, 0, 0, 0]);
});

function follow() {
  const told = [];
  const latency = new Latency((turn) => told.push({ ...turn }), () => 10);
  return { latency, told };
}

test('a turn is complete when its ledger has come and its sound was heard, in either order', () => {
  for (const isHeardFirst of [true, false]) {
    const { latency, told } = follow();
    latency.take(added(typed('u', 'hi'), null), 0);
    latency.take(created('r'), 1000);
    latency.take(audio('r', 'a'), 1100);
    latency.take(audio('r', 'a'), 1120);
    const ledger = done('r', 'completed', { latency: LEDGER });
    if (isHeardFirst) latency.started('a', 1150);
    latency.take(ledger, 1200);
    if (!isHeardFirst) latency.started('a', 1150);
    latency.started('a', 9999);
    const [turn] = latency.turns;
    assert.deepEqual([turn.responseId, turn.userItemId, turn.status], ['r', 'u', 'completed']);
    assert.deepEqual([turn.isMeasured, turn.totalMs], [true, 605 + 10 + 50]);
    assert.equal(told[0].totalMs, null);
    assert.equal(told.at(-1).totalMs, 665);
  }
});

test('an answer that nobody heard has no total', () => {
  const { latency, told } = follow();
  latency.take(created('r'), 0);
  latency.take(done('r', 'cancelled', { latency: { speech_end: 0, turn_end: 200 } }), 5);
  assert.deepEqual([told.at(-1).totalMs, told.at(-1).isMeasured, told.at(-1).status], [null, false, 'cancelled']);
  assert.deepEqual(figures(told.at(-1).parts), [200, 0, 0, 0, 0, 0]);
});

test('a response that is lost with its socket has been broken off', () => {
  const { latency, told } = follow();
  latency.take(created('r'), 0);
  latency.lose();
  latency.lose();
  latency.take(done('r'), 5);
  assert.deepEqual(told.map(({ status }) => status), ['in_progress', 'cancelled']);
  latency.take(created('s'), 10);
  latency.take(audio('s', 'a'), 11);
  latency.take(done('s'), 12); // and not heard yet
  latency.lose();
  assert.equal(latency.turns[1].status, 'completed');
});

test('an answer to a call answers no message, and one out of band is no turn', () => {
  const { latency } = follow();
  latency.take(added(typed('u', 'hi'), null), 0);
  latency.take(created('r'), 0);
  latency.take(created('s'), 0);
  latency.take({ type: 'response.created', response: { id: 'x', conversation_id: null } }, 0);
  assert.deepEqual(latency.turns.map(({ userItemId }) => userItemId), ['u', null]);
});
