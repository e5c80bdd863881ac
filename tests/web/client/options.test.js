import assert from 'node:assert/strict';
import { test } from 'node:test';

import { begin, newParley } from './fakes.js';

test('no session and no tools may be null', async () => {
  const { parley, socket } = await begin({ session: null, tools: null, codec: undefined });
  assert.equal(socket.took('session.update').length, 1); // the formats
  await parley.close();
});

const wrong = [
  [{ leadMs: -5 }, /leadMs must be .*40 to 60000.*-5/],
  [{ leadMs: 39 }, /leadMs/],
  [{ leadMs: 60001 }, /leadMs/],
  [{ leadMs: NaN }, /leadMs/],
  [{ leadMs: '100' }, /leadMs/],
  [{ url: 'ftp://server.test' }, /url must begin with wss:.*ftp:/],
  [{ url: '::::' }, /url is no address of a server: ::::/],
  [{ codec: 'mp3' }, /codec must be one of auto, opus, pcm, not mp3/],
  [{ tools: { look: { description: 'No function.' } } }, /tools\.look\.call must be a function/],
];
for (const [options, words] of wrong) {
  test(`refused in words: ${JSON.stringify(options)}`, () => {
    assert.throws(() => newParley(options), words);
  });
}

for (const options of [{ leadMs: 40 }, { leadMs: 60000 }, { leadMs: 'off' }, { leadMs: null }]) {
  test(`taken: ${JSON.stringify(options)}`, () => {
    newParley(options);
  });
}
for (const url of ['ws://server.test', 'wss://server.test/v1/realtime?model=x', 'https://server.test', null]) {
  test(`an address: ${url}`, () => {
    newParley({ url });
  });
}

test('only a text can be said', async () => {
  const { parley } = await begin();
  assert.throws(() => parley.say(undefined), { name: 'TypeError', message: 'say() takes a text, not undefined.' });
  await parley.close();
});
