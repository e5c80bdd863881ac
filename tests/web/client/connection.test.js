import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

import { Connection } from '../../../web/client/connection.js';
import { FakeSocket, WELL, fakeFetch, fakeTime, pass, settle } from './fakes.js';

fakeTime();
beforeEach(() => FakeSocket.all.splice(0));

const dial = (options = {}) =>
  Connection.open({
    address: 'ws://server.test/v1/realtime',
    key: null,
    signal: new AbortController().signal,
    Socket: FakeSocket,
    clock: () => Date.now(),
    fetch: fakeFetch(WELL),
    ...options,
  });

async function open() {
  const opening = dial();
  FakeSocket.last.greet();
  const connection = await opening;
  const log = [];
  connection.start({
    onEvent: (event) => log.push(event.type),
    onSettled: () => log.push('settled'),
    onClosed: (closing) => log.push(closing),
  });
  return { connection, socket: FakeSocket.last, log };
}

const refused = (opening) => opening.then(() => assert.fail('it was opened'), (error) => error);

test('what comes with the first event is not lost', async () => {
  const opening = dial();
  FakeSocket.last.greet();
  FakeSocket.last.tell({ type: 'one' }, { type: 'two' });
  const connection = await opening;
  await settle();
  const log = [];
  connection.start({ onEvent: ({ type }) => log.push(type) });
  FakeSocket.last.tell({ type: 'three' });
  assert.deepEqual(log, ['one', 'two', 'three']);
  assert.equal(connection.greeting.session.id, 'sess_1');
  connection.close();
});

test('a socket that ends before anybody listens is told, and leaves no timer', async () => {
  const opening = dial();
  FakeSocket.last.greet();
  const connection = await opening;
  FakeSocket.last.end(1006);
  const log = [];
  connection.start({ onClosed: ({ code }) => log.push(code) });
  await pass(60000);
  assert.deepEqual(log, [1006]);
  assert.deepEqual(FakeSocket.last.sent, []);
});

test('garbage on the wire harms nothing', async () => {
  const { connection, socket, log } = await open();
  for (const data of ['{', 'null', '[]', '3', '{"no": "type"}']) socket.onmessage({ data });
  socket.tell({ type: 'still.here' });
  assert.deepEqual(log, ['still.here']);
  connection.close();
});

test('a full server says so after the upgrade', async () => {
  const opening = refused(dial());
  FakeSocket.last.accept();
  FakeSocket.last.tell({ type: 'error', error: { code: 'too_many_sessions', message: 'All 3 are taken.' } });
  FakeSocket.last.end(1013, 'All 3 are taken.');
  const error = await opening;
  assert.equal(error.code, 'full');
  assert.equal(error.message, 'All 3 are taken.');
});

const LOADING = [503, { status: 'loading', loading: 'the voice' }];
const FAILED = [503, { status: 'failed', failure: 'the voice is gone' }];
const UNAUTHORISED = [401, { error: { message: 'No such key.' } }];
const refusals = [
  ['a wrong key', { key: 'k', answers: { ...WELL, '/v1/models': UNAUTHORISED } }, 'unauthorised', /key is wrong.*No such/],
  ['no key', { answers: { ...WELL, '/v1/models': UNAUTHORISED } }, 'unauthorised', /wants a key/],
  ['a server that starts', { answers: { '/health/ready': LOADING } }, 'starting', /the voice/],
  ['a server that fails', { answers: { '/health/ready': FAILED } }, 'starting', /the voice is gone/],
  ['no server', { answers: null }, 'unreachable', /running/],
  ['a strange origin', { answers: { ...WELL, '/v1/models': [403, { error: { message: 'Not from here.' } }] } }, 'refused', /Not from here/],
  ['no reason', { answers: WELL }, 'refused', /does not say/],
  ['a token of a session that is over', { answers: WELL, isResuming: true }, 'session_over', /over/],
];
for (const [what, { answers, ...options }, code, message] of refusals) {
  test(`a refusal is explained: ${what}`, async () => {
    const opening = refused(dial({ ...options, fetch: fakeFetch(answers) }));
    FakeSocket.last.end(1006);
    const error = await opening;
    assert.equal(error.code, code);
    assert.match(error.message, message);
  });
}

test('to a page of another origin it is said that the server may not allow it', async () => {
  globalThis.location = { origin: 'https://demo.example' };
  try {
    const opening = refused(dial({ fetch: fakeFetch(null) }));
    FakeSocket.last.end(1006);
    assert.match((await opening).message, /running.*https:\/\/demo\.example \(server\.origins\)/);
  } finally {
    delete globalThis.location;
  }
});

test('a key that no header can carry is no failure of the server', async () => {
  class Strict {
    constructor(_address, protocols) {
      if (protocols.some((name) => /\s/.test(name))) throw new SyntaxError('bad subprotocol');
    }
  }
  assert.equal((await refused(dial({ key: 'two words', Socket: Strict }))).code, 'unauthorised');
});

test('a server that takes the socket and says nothing is given up', async () => {
  const opening = refused(dial({ fetch: fakeFetch(null) }));
  FakeSocket.last.accept();
  await pass(10000);
  assert.equal((await opening).code, 'unreachable');
  assert.equal(FakeSocket.last.closedWith, 1000);
});

test('an opening that is given up leaves nothing behind', async () => {
  const giveUp = new AbortController();
  const opening = refused(dial({ signal: giveUp.signal }));
  const socket = FakeSocket.last;
  giveUp.abort();
  assert.equal((await opening).code, 'session_over');
  assert.equal(socket.closedWith, 1000);
  assert.equal(socket.onmessage, null);
});

test('the round trip is the median of the pings', async () => {
  const { connection, socket, log } = await open();
  assert.equal(connection.networkMs, 0);
  for (const ms of [100, 10, 30]) {
    const { id } = socket.took('parley.ping').at(-1);
    await pass(ms);
    socket.tell({ type: 'parley.pong', id });
    await pass(5000 - ms);
  }
  assert.equal(connection.networkMs, 15);
  assert.deepEqual(log, ['settled']);
  connection.close();
});

test('twelve seconds without a sign are a loss, and its late events are ignored', async () => {
  const { socket, log } = await open();
  socket.tell({ type: 'a.sign' });
  await pass(5000); // a ping leaves
  await pass(6999);
  assert.deepEqual(log, ['a.sign']);
  await pass(1);
  assert.equal(socket.closedWith, 4000);
  assert.equal(log.at(-1).code, 1006);
  socket.tell({ type: 'late' });
  socket.end(1006);
  assert.equal(log.length, 2);
});

test('six seconds are one, while something is to come', async () => {
  const { connection, socket, log } = await open();
  socket.tell({ type: 'a.sign' });
  connection.isPressing = true;
  socket.tell({ type: 'a.sign' });
  await pass(2000); // a ping leaves
  await pass(3999);
  assert.equal(socket.closedWith, null);
  await pass(1);
  assert.equal(socket.closedWith, 4000);
  assert.equal(log.at(-1).code, 1006);
});

test('a state that comes and goes costs no ping each time', async () => {
  const { connection, socket } = await open();
  await pass(2000);
  const count = socket.took('parley.ping').length;
  for (let n = 0; n < 5; n += 1) {
    connection.isPressing = true;
    await pass(100);
    connection.isPressing = false;
    await pass(100);
  }
  assert.equal(socket.took('parley.ping').length, count + 1);
  connection.close();
});

test('the pulse is calm again when nothing is to come any more', async () => {
  const { connection, socket } = await open();
  connection.isPressing = true;
  connection.isPressing = false;
  socket.tell({ type: 'a.sign' });
  const count = socket.took('parley.ping').length;
  await pass(4999);
  assert.equal(socket.took('parley.ping').length, count);
  await pass(1);
  assert.equal(socket.took('parley.ping').length, count + 1);
  connection.close();
});

test('any message is a sign, also the error of a server that knows no pings', async () => {
  const { connection, socket, log } = await open();
  for (let n = 0; n < 5; n += 1) {
    await pass(5000);
    const { event_id: id } = socket.took('parley.ping').at(-1);
    socket.tell({ type: 'error', error: { code: 'invalid_value', message: 'What?', event_id: id } });
  }
  assert.deepEqual(log, []);
  connection.close();
});

test('after close nothing is told, sent or waited for', async () => {
  const { connection, socket, log } = await open();
  connection.close();
  assert.equal(socket.closedWith, 1000);
  const count = socket.sent.length;
  socket.tell({ type: 'late' });
  socket.end(1000);
  await pass(60000);
  assert.equal(connection.send({ type: 'x' }), false);
  assert.deepEqual(log, []);
  assert.equal(socket.sent.length, count);
});
