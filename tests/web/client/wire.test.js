import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  audioMs,
  decodeBase64,
  encodeBase64,
  explainClose,
  pageAddress,
  socketAddress,
  subprotocols,
} from '../../../web/client/wire.js';

test('bytes come back from base64 as they were, however many', () => {
  for (const length of [0, 1, 2, 3, 959, 8191, 8192, 8193, 100_000]) {
    const bytes = Uint8Array.from({ length }, (_, n) => (n * 7) & 255);
    assert.equal(encodeBase64(bytes), Buffer.from(bytes).toString('base64'));
    assert.deepEqual(decodeBase64(encodeBase64(bytes)), bytes);
  }
});

test('the length of PCM is that of its samples', () => {
  for (const samples of [0, 1, 2, 3, 480]) {
    const base64 = Buffer.alloc(samples * 2).toString('base64');
    assert.equal(audioMs(base64, { type: 'audio/pcm', rate: 24000 }), samples / 24);
    assert.equal(audioMs(base64, { type: 'audio/pcm', rate: 48000 }), samples / 48);
  }
});

test('the length of an Opus packet stands in its first bytes', () => {
  const packetMs = (configuration, code, second = 0) =>
    audioMs(Buffer.from([(configuration << 3) | code, second, 0, 0, 0]).toString('base64'), { type: 'audio/opus' });
  assert.equal(packetMs(1, 0), 20); // SILK
  assert.equal(packetMs(3, 0), 60);
  assert.equal(packetMs(13, 0), 20); // hybrid
  assert.equal(packetMs(12, 1), 20); // two frames of 10 ms
  assert.equal(packetMs(31, 0), 20); // CELT
  assert.equal(packetMs(28, 3, 3), 7.5); // three frames of 2.5 ms
  assert.equal(audioMs('', { type: 'audio/opus' }), 0);
});

test('the address is that of the endpoint, of the page by default', () => {
  const page = 'https://voice.test:8443/some/page.html#key=k';
  assert.equal(
    socketAddress(null, { resume: 'new' }, page),
    'wss://voice.test:8443/v1/realtime?details=on&resume=new',
  );
  assert.equal(
    socketAddress('http://other.test', { resume: 'a+b', leadMs: 200 }, page),
    'ws://other.test/v1/realtime?details=on&resume=a%2Bb&lead_ms=200',
  );
  assert.equal(
    socketAddress('wss://other.test/deep/v1/realtime?model=m', { resume: 'new', leadMs: 'off' }, page),
    'wss://other.test/deep/v1/realtime?model=m&details=on&resume=new&lead_ms=off',
  );
  assert.equal(pageAddress('wss://voice.test/v1/realtime?resume=x', '/v1/models'), 'https://voice.test/v1/models');
});

test('a key goes where a browser can show one', () => {
  assert.deepEqual(subprotocols(null), ['realtime']);
  assert.deepEqual(subprotocols('k'), ['realtime', 'openai-insecure-api-key.k']);
});

test("the server's reason goes before what a code says", () => {
  assert.equal(explainClose(1001, 'It has lasted 60 minutes.'), 'It has lasted 60 minutes.');
  assert.match(explainClose(1001, ''), /ended/);
  assert.match(explainClose(1006, ''), /lost/);
  assert.match(explainClose(4567, ''), /4567/);
});
