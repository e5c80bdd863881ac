// What stands in for the browser: a socket whose server is the test, a sound that plays nothing,
// and time that passes when the test says so.

import { mock } from 'node:test';

import { Parley } from '../../../web/client/parley.js';

export const PCM = { type: 'audio/pcm', rate: 24000 };
export const FRAME_MS = 20;
export const FRAME = Buffer.alloc(FRAME_MS * 48).toString('base64');

export function fakeTime() {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: 1_000_000 });
}

// Lets promises go on as far as they can.
export async function settle() {
  for (let n = 0; n < 50; n += 1) await null;
}

export async function pass(ms) {
  mock.timers.tick(ms);
  await settle();
}

export class FakeSocket {
  static all = [];
  static get last() {
    return FakeSocket.all.at(-1);
  }

  readyState = 0;
  sent = [];
  closedWith = null;

  constructor(address, protocols) {
    this.address = new URL(address);
    this.protocols = protocols;
    FakeSocket.all.push(this);
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close(code) {
    this.closedWith = code;
    this.readyState = 3;
  }

  // ---- the server's side

  accept() {
    this.readyState = 1;
    this.onopen?.({});
  }

  tell(...events) {
    for (const event of events) this.onmessage?.({ data: JSON.stringify(event) });
  }

  end(code = 1006, reason = '') {
    this.readyState = 3;
    this.onclose?.({ code, reason });
  }

  greet({ id = 'sess_1', token = 'token_1', session = {} } = {}) {
    this.accept();
    const resume = token === null ? undefined : { token, within_ms: 30000 };
    this.tell({ type: 'session.created', session: { id, ...session }, parley: { resume } });
  }

  // Of a type; or of all types but pings.
  took(type) {
    return this.sent.filter((event) => (type ? event.type === type : event.type !== 'parley.ping'));
  }

  get types() {
    return this.took().map(({ type }) => type);
  }
}

export class FakeSound {
  static opened = [];
  static gate = null; // a promise that open() waits for
  static async open(handlers) {
    await FakeSound.gate;
    const sound = new FakeSound(handlers);
    FakeSound.opened.push(sound);
    return sound;
  }

  inputFormat = PCM;
  outputFormat = PCM;
  codec = 'pcm';
  microphone = { label: 'A microphone', deviceId: 'mic', settings: {} };
  played = []; // [item, audio]
  finished = [];
  held = [];
  clears = []; // resolve functions, oldest first
  isMuted = false;
  isClosed = false;

  constructor(handlers) {
    this.handlers = handlers;
  }

  play(id, audio) {
    this.played.push([id, audio]);
  }

  finish(id) {
    this.finished.push(id);
  }

  hold(isHeld) {
    this.held.push(isHeld);
  }

  clear() {
    return new Promise((resolve) => {
      this.clears.push(resolve);
    });
  }

  // The loudspeaker answers the oldest clear().
  async cleared(itemId = null, playedMs = 0) {
    this.clears.shift()(itemId === null ? null : { itemId, playedMs });
    await settle();
  }

  // The loudspeaker tells how far it is.
  progress(itemId, playedMs, { isPlaying = true, bufferedMs = isPlaying ? 100 : 0 } = {}) {
    this.handlers.onProgress({ itemId, playedMs, bufferedMs, isPlaying });
  }

  mute() {
    this.isMuted = true;
  }

  unmute() {
    this.isMuted = false;
  }

  levels() {
    return { input: 0.5, output: 0.25 };
  }

  async useMicrophone(choice) {
    this.microphone = choice === false ? null : { label: 'Another', deviceId: choice.deviceId, settings: {} };
  }

  async close() {
    this.isClosed = true;
    for (const resolve of this.clears.splice(0)) resolve(null);
  }
}

// A page's answer to plain requests, by path: [status, body]; null where nothing answers.
export function fakeFetch(answers) {
  return async (address) => {
    const answer = answers?.[new URL(address).pathname];
    if (!answer) throw new TypeError('fetch failed');
    const [status, body] = answer;
    return { status, ok: status < 300, json: async () => body };
  };
}

export const WELL = { '/health/ready': [200, {}], '/v1/models': [200, {}] };

export function newParley(options = {}) {
  const parley = new Parley({
    url: 'ws://server.test',
    Socket: FakeSocket,
    Sound: FakeSound,
    clock: () => Date.now(),
    fetch: fakeFetch(WELL),
    ...options,
  });
  parley.log = [];
  for (const type of ['state', 'itemremoved', 'problem', 'reconnecting', 'resumed', 'closed', 'turn', 'call']) {
    parley.addEventListener(type, ({ detail }) => parley.log.push([type, detail]));
  }
  parley.told = (type) => parley.log.filter(([name]) => name === type).map(([, detail]) => detail);
  return parley;
}

// A conversation that is open: {parley, socket, sound}.
export async function begin(options = {}) {
  const parley = newParley(options);
  const connecting = parley.connect();
  await settle();
  const socket = FakeSocket.last;
  socket.greet();
  await settle();
  socket.tell({ type: 'session.updated', session: { id: 'sess_1' } });
  await connecting;
  return { parley, socket, sound: FakeSound.opened.at(-1) };
}

// ---- events of the server --------------------------------------------------------------------

export const state = (name) => ({ type: 'parley.state', state: name });
export const created = (id) => ({
  type: 'response.created',
  response: { id, status: 'in_progress', conversation_id: 'conv_1' },
});
export const done = (id, status = 'completed', more = {}) => ({
  type: 'response.done',
  response: { id, status, conversation_id: 'conv_1', ...more.response },
  parley: { latency_ms: more.latency ?? {} },
});
export const added = (item, previous) => ({
  type: 'conversation.item.added',
  item,
  previous_item_id: previous,
});
export const itemDone = (item, previous) => ({ ...added(item, previous), type: 'conversation.item.done' });
export const assistant = (id, text = null, status = text === null ? 'in_progress' : 'completed') => ({
  id,
  type: 'message',
  role: 'assistant',
  status,
  content: text === null ? [] : [{ type: 'output_audio', transcript: text }],
});
export const typed = (id, text) => ({
  id,
  type: 'message',
  role: 'user',
  status: 'completed',
  content: [{ type: 'input_text', text }],
});
export const spoken = (id, transcript = null) => ({
  id,
  type: 'message',
  role: 'user',
  status: 'completed',
  content: [{ type: 'input_audio', transcript }],
});
export const call = (id, name, args = '{}', status = 'completed') => ({
  id,
  type: 'function_call',
  status,
  call_id: `call_${id}`,
  name,
  arguments: args,
});
export const answer = (id, callId, output) => ({
  id,
  type: 'function_call_output',
  status: 'completed',
  call_id: callId,
  output,
});
export const words = (response, item, delta) => ({
  type: 'response.output_audio_transcript.delta',
  response_id: response,
  item_id: item,
  delta,
});
export const audio = (response, item) => ({
  type: 'response.output_audio.delta',
  response_id: response,
  item_id: item,
  delta: FRAME,
});
export const audioDone = (response, item) => ({
  type: 'response.output_audio.done',
  response_id: response,
  item_id: item,
});
export const outputAdded = (response, item) => ({
  type: 'response.output_item.added',
  response_id: response,
  item,
});
export const outputDone = (response, item) => ({
  type: 'response.output_item.done',
  response_id: response,
  item,
});

// A response that has begun to speak: two words, a tenth of a second each.
export function speaking(response = 'resp_1', item = 'item_a', previous = null) {
  const frames = Array.from({ length: 5 }, () => audio(response, item));
  return [
    created(response),
    outputAdded(response, assistant(item)),
    added(assistant(item), previous),
    words(response, item, 'Hello '),
    ...frames,
    words(response, item, 'there'),
    ...frames,
  ];
}
