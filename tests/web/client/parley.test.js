import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

import { ParleyError } from '../../../web/parley-client.js';
import {
  FRAME,
  FakeSocket,
  FakeSound,
  PCM,
  WELL,
  audioDone,
  begin,
  created,
  done,
  fakeFetch,
  fakeTime,
  newParley,
  pass,
  settle,
  speaking,
  state,
} from './fakes.js';

fakeTime();
const unhandled = [];
process.on('unhandledRejection', (error) => unhandled.push(error));
beforeEach(() => {
  FakeSocket.all.splice(0);
  FakeSound.opened.splice(0);
  FakeSound.gate = null;
});

const rejection = (promise) => promise.then(() => assert.fail('it was opened'), (error) => error);
const states = (parley) => parley.told('state').map(({ state: name }) => name);

test('a conversation begins with its formats, then the settings of the page', async () => {
  const session = {
    instructions: 'Be kind.',
    audio: { input: { format: { type: 'audio/pcmu' }, turn_detection: null }, output: { voice: 'v' } },
  };
  const { parley, socket } = await begin({ session, key: 'k', leadMs: 100 });
  assert.deepEqual(socket.protocols, ['realtime', 'openai-insecure-api-key.k']);
  assert.equal(socket.address.href, 'ws://server.test/v1/realtime?details=on&resume=new&lead_ms=100');
  const [formats, wanted] = socket.took('session.update').map((event) => event.session);
  assert.deepEqual(formats.audio.input, { format: PCM, transcription: { model: 'whisper-1' } });
  assert.deepEqual(formats.audio.output, { format: PCM });
  const audio = { input: { turn_detection: null }, output: { voice: 'v' } };
  assert.deepEqual(wanted, { type: 'realtime', instructions: 'Be kind.', audio });
  assert.deepEqual(states(parley), ['connecting', 'listening']);
  assert.deepEqual([parley.sessionId, parley.resumeToken, parley.codec], ['sess_1', 'token_1', 'pcm']);
  assert.equal(parley.microphone.label, 'A microphone');
  await parley.close();
});

test('a transcription that the page wants is not replaced', async () => {
  const session = { audio: { input: { transcription: { model: 'm', language: 'de' } } } };
  const { parley, socket } = await begin({ session });
  const [formats, wanted] = socket.took('session.update').map((event) => event.session);
  assert.equal('transcription' in formats.audio.input, false);
  assert.equal(wanted.audio.input.transcription.language, 'de');
  await parley.close();
});

test('the microphone is sent once the formats are, and not before', async () => {
  const parley = newParley();
  const connecting = parley.connect();
  await settle();
  const [sound] = FakeSound.opened;
  sound.handlers.onPacket('early');
  FakeSocket.last.greet();
  await settle();
  sound.handlers.onPacket(FRAME);
  FakeSocket.last.tell({ type: 'session.updated', session: {} });
  await connecting;
  assert.deepEqual(FakeSocket.last.types, ['session.update', 'input_audio_buffer.append']);
  await parley.close();
  sound.handlers.onPacket('late');
  assert.equal(FakeSocket.last.took('input_audio_buffer.append').length, 1);
});

test('formats that the server refuses are a refusal', async () => {
  const parley = newParley();
  const failing = rejection(parley.connect());
  await settle();
  FakeSocket.last.greet();
  const error = { code: 'invalid_value', message: 'No Opus here.', event_id: 'setup_formats' };
  await settle();
  FakeSocket.last.tell({ type: 'error', error });
  const refusal = await failing;
  assert.ok(refusal instanceof ParleyError);
  assert.deepEqual([refusal.code, refusal.message], ['refused', 'No Opus here.']);
  assert.deepEqual([parley.state, FakeSound.opened[0].isClosed, FakeSocket.last.closedWith], ['idle', true, 1000]);
});

test('a connection that fails leaves nothing behind, and may be tried again', async () => {
  const parley = newParley({ fetch: fakeFetch(null) });
  const failing = rejection(parley.connect());
  await settle();
  FakeSocket.last.end(1006);
  assert.equal((await failing).code, 'unreachable');
  assert.deepEqual([parley.state, FakeSound.opened[0].isClosed, parley.microphone], ['idle', true, null]);
  const again = parley.connect();
  await settle();
  FakeSocket.last.greet();
  await settle();
  FakeSocket.last.tell({ type: 'session.updated', session: {} });
  await again;
  assert.equal(parley.state, 'listening');
  await assert.rejects(parley.connect(), /another/);
  await parley.close();
});

test('a microphone that is denied ends it before any socket is opened', async () => {
  class Denied {
    static async open() {
      throw new ParleyError('microphone_denied', 'Allow it.');
    }
  }
  const parley = newParley({ Sound: Denied });
  assert.equal((await rejection(parley.connect())).code, 'microphone_denied');
  assert.deepEqual([parley.state, FakeSocket.all.length], ['idle', 0]);
});

test('closed while the sound is opened', async () => {
  let open;
  FakeSound.gate = new Promise((resolve) => {
    open = resolve;
  });
  const parley = newParley();
  const failing = rejection(parley.connect());
  await parley.close();
  open();
  assert.equal((await failing).code, 'session_over');
  assert.deepEqual([parley.state, FakeSound.opened[0].isClosed, FakeSocket.all.length], ['closed', true, 0]);
});

for (const [when, upTo] of [
  ['the socket opens', () => {}],
  ['the server has not spoken', () => FakeSocket.last.accept()],
  ['the formats are on their way', () => FakeSocket.last.greet()],
]) {
  test(`closed while ${when}`, async () => {
    const parley = newParley();
    const failing = rejection(parley.connect());
    await settle();
    upTo();
    await settle();
    await parley.close();
    assert.equal((await failing).code, 'session_over');
    assert.deepEqual([parley.state, FakeSound.opened[0].isClosed], ['closed', true]);
    assert.equal(FakeSocket.last.closedWith, 1000);
    FakeSocket.last.tell({ type: 'session.updated', session: {} }, state('speaking'));
    await pass(60000);
    assert.equal(parley.state, 'closed');
    assert.deepEqual(parley.told('closed'), [{ code: 1000, message: null }]);
    assert.equal(FakeSocket.all.length, 1);
  });
}

test('close ends all, once, and the conversation stays', async () => {
  const { parley, socket, sound } = await begin();
  parley.say('hello');
  await Promise.all([parley.close(), parley.close()]);
  await parley.close();
  assert.deepEqual([socket.closedWith, sound.isClosed, parley.state, parley.codec], [1000, true, 'closed', null]);
  assert.deepEqual(parley.told('closed'), [{ code: 1000, message: null }]);
  parley.say('more');
  parley.interrupt();
  parley.update({ instructions: 'x' });
  parley.mute();
  const count = socket.sent.length;
  await pass(60000);
  assert.equal(socket.sent.length, count);
  assert.deepEqual(parley.levels, { input: 0, output: 0 });
  assert.equal(parley.toJSON().session_id, 'sess_1');
  assert.match(parley.toJSON().started_at, /^\d{4}-.*Z$/);
});

test('a server that stops, and a session whose time is over, end it in plain words', async () => {
  for (const [events, reason, code, closeCode = 1001] of [
    [[], 'Over.', 'server_stopping'],
    [[], 'The session goes on over another connection.', 'session_over', 4001],
    [[], 'The session goes on over another connection.', 'server_stopping'], // words decide nothing
    [[{ type: 'error', error: { code: 'session_expired', message: 'It lasted 60 minutes.' } }], 'Over.', 'session_over'],
  ]) {
    const { parley, socket, sound } = await begin();
    socket.tell(...events);
    socket.end(closeCode, reason);
    await settle();
    const message = code === 'server_stopping' ? `The server is stopping. ${reason}` : reason;
    assert.deepEqual(parley.told('problem').at(-1), { code, message, isFatal: true });
    assert.deepEqual(parley.told('closed'), [{ code: closeCode, message }]);
    assert.deepEqual([parley.state, sound.isClosed], ['closed', true]);
  }
});

test("errors are told in the server's own words, a failure only once", async () => {
  const { parley, socket } = await begin();
  const error = { code: 'llm_gone', message: 'The language model is gone.' };
  socket.tell({ type: 'error', error: { code: null, message: 'Wrong.' } });
  socket.tell(created('r'), { type: 'error', error });
  socket.tell(done('r', 'failed', { response: { status_details: { type: 'failed', error } } }));
  socket.tell(created('s'), done('s', 'failed', { response: { status_details: { error } } }));
  socket.tell(created('t'), done('t', 'incomplete', { response: { status_details: { reason: 'max_output_tokens' } } }));
  socket.tell(created('v'), done('v', 'cancelled'));
  assert.deepEqual(
    parley.told('problem').map(({ code }) => code),
    [null, 'llm_gone', 'llm_gone', 'max_output_tokens'],
  );
  assert.ok(parley.told('problem').every(({ isFatal }) => !isFatal));
  await parley.close();
});

test('the state is what the server says, but speaking lasts until it has been heard', async () => {
  const { parley, socket, sound } = await begin();
  socket.tell(state('thinking'), created('r'), state('speaking'));
  sound.progress('a', 10);
  socket.tell(done('r'), state('listening'));
  assert.equal(parley.state, 'speaking');
  sound.progress('a', 100, { isPlaying: false });
  assert.deepEqual(states(parley), ['connecting', 'listening', 'thinking', 'speaking', 'listening']);
  await parley.close();
});

test('held is shown while the sound is cut short by it', async () => {
  const { parley, socket, sound } = await begin();
  socket.tell(state('thinking'), ...speaking(), state('speaking'));
  sound.progress('item_a', 50);
  socket.tell(state('held'));
  assert.deepEqual([parley.state, sound.held.at(-1)], ['speaking', true]);
  sound.progress('item_a', 200, { isPlaying: false });
  assert.equal(parley.state, 'held');
  socket.tell(state('speaking'));
  assert.deepEqual([parley.state, sound.held.at(-1)], ['speaking', false]);
  socket.tell(state('held'), { type: 'input_audio_buffer.speech_started', item_id: 'u' });
  socket.tell(audioDone('resp_1', 'item_a'), done('resp_1', 'cancelled'), state('hearing'));
  assert.deepEqual(states(parley).slice(-3), ['speaking', 'held', 'hearing']);
  await parley.close();
});

test('what is played to its end while the server holds was not cut short', async () => {
  const { parley, socket, sound } = await begin();
  socket.tell(...speaking(), audioDone('resp_1', 'item_a'), done('resp_1'), state('held'));
  sound.progress('item_a', 200, { isPlaying: false });
  assert.equal(parley.state, 'listening');
  await parley.close();
});

test('mute is silence, also when it comes before the sound', async () => {
  const parley = newParley();
  parley.mute();
  const connecting = parley.connect();
  await settle();
  const [sound] = FakeSound.opened;
  assert.deepEqual([sound.isMuted, parley.isMuted, parley.levels], [true, true, { input: 0, output: 0.25 }]);
  parley.unmute();
  assert.deepEqual([sound.isMuted, parley.levels], [false, { input: 0.5, output: 0.25 }]);
  await parley.close();
  await rejection(connecting);
});

test('another microphone, none, and one that is gone', async () => {
  const { parley, sound } = await begin();
  const told = [];
  parley.addEventListener('microphone', ({ detail }) => told.push(detail.microphone?.label ?? null));
  await parley.useMicrophone({ deviceId: 'b' });
  await parley.useMicrophone(false);
  sound.handlers.onMicrophoneLost({ code: 'microphone_missing', message: 'It is gone.' });
  assert.deepEqual(told, ['Another', null, null]);
  assert.deepEqual(parley.told('problem'), [{ code: 'microphone_missing', message: 'It is gone.', isFatal: false }]);
  assert.equal(parley.state, 'listening');
  await parley.close();
});

test('what is sent is told, but for audio; and settings are sent without formats', async () => {
  const { parley, socket, sound } = await begin();
  const sent = [];
  parley.addEventListener('sent', ({ detail }) => sent.push(detail.event.type));
  sound.handlers.onPacket(FRAME);
  parley.update({ audio: { output: { format: PCM, voice: 'w' } } });
  parley.send({ type: 'input_audio_buffer.clear' });
  assert.deepEqual(sent, ['session.update', 'input_audio_buffer.clear']);
  assert.deepEqual(socket.took('session.update').at(-1).session, { type: 'realtime', audio: { output: { voice: 'w' } } });
  await parley.close();
});

test('a turn of which nothing is told any more vanishes by itself', async () => {
  const { parley, socket } = await begin();
  socket.tell({ type: 'input_audio_buffer.speech_started', item_id: 'u' });
  socket.tell({ type: 'input_audio_buffer.speech_stopped', item_id: 'u' });
  await pass(5000);
  assert.equal(parley.items.length, 1);
  socket.tell({ type: 'parley.pong', id: 'x' });
  await pass(5000);
  socket.tell({ type: 'parley.pong', id: 'x' });
  await pass(5000);
  assert.deepEqual([parley.items, parley.told('itemremoved')], [[], [{ id: 'u' }]]);
  await parley.close();
});

test('the server is well, but the earlier conversation is over: a new one begins', async () => {
  const parley = newParley({ resume: 'old', fetch: fakeFetch(WELL) });
  const connecting = parley.connect();
  await settle();
  assert.equal(FakeSocket.last.address.searchParams.get('resume'), 'old');
  FakeSocket.last.end(1006);
  await settle();
  assert.equal(FakeSocket.last.address.searchParams.get('resume'), 'new');
  FakeSocket.last.greet();
  await settle();
  FakeSocket.last.tell({ type: 'session.updated', session: {} });
  await connecting;
  const [problem] = parley.told('problem');
  assert.deepEqual([problem.code, problem.isFatal, parley.state], ['session_over', false, 'listening']);
  await parley.close();
});

test('a reload whose sound has another format says so', async () => {
  const parley = newParley({ resume: 'old' });
  const connecting = parley.connect();
  await settle();
  const opus = { format: { type: 'audio/opus', rate: 24000 } };
  FakeSocket.last.greet({ session: { audio: { input: { ...opus, transcription: null }, output: opus } } });
  await settle();
  const [{ session }] = FakeSocket.last.took('session.update');
  assert.deepEqual(session.audio, { input: { format: PCM }, output: { format: PCM } });
  FakeSocket.last.tell({ type: 'session.updated', session: {} });
  await connecting;
  await parley.close();
});

test('no promise was left alone', async () => {
  await settle();
  assert.deepEqual(unhandled, []);
});
