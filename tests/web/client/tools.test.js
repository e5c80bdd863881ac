import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

import {
  FakeSocket,
  PCM,
  added,
  answer,
  assistant,
  audio,
  begin,
  call,
  created,
  done,
  fakeTime,
  itemDone,
  outputAdded,
  newParley,
  outputDone,
  pass,
  settle,
  state,
} from './fakes.js';

fakeTime();
beforeEach(() => FakeSocket.all.splice(0));

let gates;
const later = () => new Promise((resolve, reject) => gates.push({ resolve, reject }));
const TOOLS = {
  weather: { description: 'The weather.', parameters: { type: 'object' }, call: ({ city }) => ({ city, rain: true }) },
  endless: { description: 'Too much.', parameters: {}, call: ({ length }) => 'ü'.repeat(length) },
  slow: { description: 'Slow.', parameters: {}, call: () => later() },
  broken: {
    description: 'Breaks.',
    parameters: {},
    call: () => {
      throw new Error('out of order');
    },
  },
};

async function withTools(options = {}) {
  gates = [];
  const opened = await begin({ tools: TOOLS, ...options });
  opened.socket.sent.splice(0);
  return opened;
}

// As the wire tells a call that is complete.
const calling = (id, name, args = '{}', response = 'r') => [
  outputAdded(response, call(id, name, '', 'in_progress')),
  added(call(id, name, '', 'in_progress'), null),
  outputDone(response, call(id, name, args)),
  itemDone(call(id, name, args), null),
];
const outputs = (socket) =>
  socket.took('conversation.item.create').map(({ item }) => [item.type, item.call_id, item.output]);
const asked = (socket) => socket.took('response.create').length;

test('tools are described in the session, beside its own', async () => {
  await begin({ tools: { weather: TOOLS.weather }, session: { tools: [{ name: 'own' }], instructions: 'x' } });
  const [formats, session] = FakeSocket.last.took('session.update');
  assert.equal(formats.session.tools, undefined);
  assert.deepEqual(session.session.tools, [
    { name: 'own' },
    { type: 'function', name: 'weather', description: 'The weather.', parameters: { type: 'object' } },
  ]);
});

test('a call is answered, and the answer asked for once its response is done', async () => {
  const { parley, socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'weather', '{"city":"Ulm"}'));
  await settle();
  assert.deepEqual(outputs(socket), [['function_call_output', 'call_c', '{"city":"Ulm","rain":true}']]);
  assert.equal(asked(socket), 0);
  socket.tell(done('r'));
  assert.equal(asked(socket), 1);
  assert.deepEqual(parley.told('call').map(({ item }) => item.call.id), ['call_c', 'call_c']);
  const [item] = parley.items;
  assert.deepEqual([item.call.status, item.call.output], ['done', '{"city":"Ulm","rain":true}']);
});

test('several calls of a response are answered by one response', async () => {
  const { socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'slow'), ...calling('d', 'weather'), ...calling('e', 'slow'), done('r'));
  await settle();
  assert.equal(outputs(socket).length, 1);
  gates[1].resolve('text as it is');
  await settle();
  assert.equal(asked(socket), 0);
  gates[0].resolve(undefined);
  await settle();
  assert.deepEqual(outputs(socket).map(([, id, output]) => [id, output]), [
    ['call_d', '{"rain":true}'],
    ['call_e', 'text as it is'],
    ['call_c', 'null'],
  ]);
  assert.equal(asked(socket), 1);
});

for (const [name, args, said] of [
  ['broken', '{}', /^Error: out of order$/],
  ['weather', '{"city":', /^Error: .*JSON/],
]) {
  test(`what goes wrong is told to the model: ${name} with ${args}`, async () => {
    const { parley, socket } = await withTools();
    socket.tell(created('r'), ...calling('c', name, args), done('r'));
    await settle();
    assert.match(outputs(socket)[0][2], said);
    assert.equal(asked(socket), 1);
    socket.tell(added(answer(socket.took('conversation.item.create')[0].item.id, 'call_c', 'Error'), 'c'));
    assert.equal(parley.items[0].call.status, 'failed');
  });
}

test('a promise that fails is no unhandled one', async () => {
  const { socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'slow'), done('r'));
  await settle();
  gates[0].reject('no reason at all');
  await settle();
  assert.match(outputs(socket)[0][2], /no reason at all/);
});

test('a tool that the page does not know is left alone and shown', async () => {
  const { parley, socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'elsewhere'), done('r'));
  await settle();
  assert.deepEqual(socket.types, []);
  assert.deepEqual([parley.items[0].call.name, parley.items[0].call.status], ['elsewhere', 'running']);
});

test('beside a call that the page answers itself, the answer waits for both', async () => {
  const { parley, socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'elsewhere'), ...calling('d', 'weather'), done('r'));
  await settle();
  assert.equal(asked(socket), 0);
  parley.send({ type: 'conversation.item.create', item: answer('o', 'call_c', 'x') });
  socket.tell(added(answer('o', 'call_c', 'x'), 'd'));
  assert.equal(asked(socket), 1);
});

test('nobody is talked over: what the user says meanwhile is answered with the result', async () => {
  const { socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'slow'), done('r'));
  socket.tell({ type: 'input_audio_buffer.speech_started', item_id: 'u' }, state('hearing'));
  await settle();
  gates[0].resolve('rain');
  await settle();
  const [{ item }] = socket.took('conversation.item.create');
  socket.tell(added(answer(item.id, 'call_c', 'rain'), 'c'));
  assert.equal(asked(socket), 0);
  socket.tell(created('s'), done('s'));
  assert.equal(asked(socket), 0); // that one knew the result
});

test('after a turn that was none, the answer is asked for', async () => {
  const { socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'slow'), done('r'));
  socket.tell({ type: 'input_audio_buffer.speech_started', item_id: 'u' }, state('hearing'));
  await settle();
  gates[0].resolve('rain');
  await settle();
  socket.tell({ type: 'input_audio_buffer.speech_stopped', item_id: 'u' }, state('listening'));
  assert.equal(asked(socket), 1);
});

test('a response that began before the result came does not count as its answer', async () => {
  const { socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'slow'), done('r'), created('s'));
  await settle();
  gates[0].resolve('rain');
  await settle();
  assert.equal(asked(socket), 0);
  socket.tell(done('s'));
  assert.equal(asked(socket), 1);
});

test('nor does one that began while the result was on its way', async () => {
  const { socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'weather'));
  socket.tell({ type: 'input_audio_buffer.speech_started', item_id: 'u' }, done('r'));
  await settle();
  const [{ item }] = socket.took('conversation.item.create');
  socket.tell(created('s'), added(answer(item.id, 'call_c', 'rain'), 'c'));
  assert.equal(asked(socket), 0);
  socket.tell(done('s'));
  assert.equal(asked(socket), 1);
});

test('a call that is told twice is made once', async () => {
  const { socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'slow'), ...calling('c', 'slow'), done('r'));
  assert.equal(gates.length, 1);
});

test('a call that the page answers by itself meanwhile is not answered again', async () => {
  const { socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'slow'), done('r'), added(answer('o', 'call_c', 'mine'), 'c'));
  gates[0].resolve('late');
  await settle();
  assert.deepEqual(socket.types, []);
});

test('a request that another response forestalled is made again, without a complaint', async () => {
  const { parley, socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'weather'), done('r'));
  await settle();
  const [{ event_id: id }] = socket.took('response.create');
  const error = { code: 'conversation_already_has_active_response', message: 'Busy.', event_id: id };
  socket.tell(created('s'), { type: 'error', error });
  assert.equal(asked(socket), 1);
  socket.tell(done('s'));
  assert.equal(asked(socket), 2);
  assert.deepEqual(parley.told('problem'), []);
});

test('a result that comes while there is no socket is sent on the next, and no call is made twice', async () => {
  const { parley, socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'slow'));
  await settle();
  socket.end(1006);
  gates[0].resolve('rain');
  await settle();
  await pass(300);
  FakeSocket.last.greet({ token: 'token_2' });
  await settle();
  const next = FakeSocket.last;
  assert.notEqual(next, socket);
  next.tell(added(call('c', 'slow'), null), itemDone(call('c', 'slow'), null));
  next.tell({ type: 'parley.pong', id: next.took('parley.ping')[0].id });
  await settle();
  assert.deepEqual(outputs(next), [['function_call_output', 'call_c', 'rain']]);
  assert.equal(asked(next), 1);
  assert.equal(gates.length, 1);
  assert.equal(parley.items.length, 1);
  await parley.close();
});

test('a call that was told only after the loss is made', async () => {
  const { parley, socket } = await withTools();
  socket.tell(created('r'));
  socket.end(1006);
  await pass(300);
  FakeSocket.last.greet({ token: 'token_2' });
  await settle();
  const next = FakeSocket.last;
  next.tell(added(call('c', 'weather'), null), itemDone(call('c', 'weather'), null));
  assert.deepEqual(outputs(next), []);
  next.tell({ type: 'parley.pong', id: next.took('parley.ping')[0].id });
  await settle();
  assert.deepEqual(outputs(next), [['function_call_output', 'call_c', '{"rain":true}']]);
  assert.equal(asked(next), 1);
  await parley.close();
});

test('after a reload a call may have been made: it is not made again, and not left open', async () => {
  gates = [];
  const parley = newParley({ tools: TOOLS, resume: 'token_0' });
  const connecting = parley.connect();
  await settle();
  const session = { audio: { input: { format: PCM }, output: { format: PCM } } };
  FakeSocket.last.greet({ session });
  FakeSocket.last.tell(added(call('c', 'slow'), null), added(call('d', 'slow'), 'c'));
  FakeSocket.last.tell(added(answer('o', 'call_d', 'rain'), 'd'));
  await connecting;
  const { last: socket } = FakeSocket;
  socket.tell({ type: 'parley.pong', id: socket.took('parley.ping')[0].id });
  await settle();
  assert.equal(gates.length, 0);
  assert.deepEqual(outputs(socket).map(([, id]) => id), ['call_c']);
  assert.match(outputs(socket)[0][2], /not known/);
  assert.equal(asked(socket), 1);
  assert.deepEqual(parley.items.map((item) => item.call.status), ['failed', 'done']);
  await parley.close();
});

test('a result after the end harms nothing', async () => {
  const { parley, socket } = await withTools();
  socket.tell(created('r'), ...calling('c', 'slow'), done('r'), added(assistant('a'), 'c'), audio('r', 'a'));
  await settle();
  await parley.close();
  gates[0].resolve('late');
  await settle();
  assert.deepEqual(outputs(socket), []);
});

test('a result that is too long to be sent is told as an error', async () => {
  const { parley, socket } = await withTools();
  socket.tell(created('r'), ...calling('fits', 'endless', '{"length":131072}'));
  socket.tell(...calling('bytes', 'endless', '{"length":131073}'));
  socket.tell(...calling('letters', 'endless', '{"length":3000000}'), done('r'));
  await settle();
  const told = outputs(socket).map(([, id, output]) => [id, output.length > 1000 ? output.length : output]);
  assert.deepEqual(told[0], ['call_fits', 131072]);
  assert.match(told[1][1], /^Error: .*too long.*131073 characters, of at most 256 KiB/);
  assert.match(told[2][1], /3000000 characters/);
  assert.deepEqual(parley.items.map(({ call }) => call.status), ['failed', 'failed', 'done']);
  assert.equal(asked(socket), 1);
});
