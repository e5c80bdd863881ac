// Drives the npm package `openai`: `node openai.mjs ws|native SCENARIOS`.

import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { OpenAIRealtimeWebSocket } from 'openai/realtime/websocket';
import { pause, playAll } from './steps.mjs';

const IS_NATIVE = process.argv[2] === 'native';

/** Resolves when the socket is open; an SDK error before that rejects. */
function connect(client, how, story) {
  const connection = IS_NATIVE
    ? new OpenAIRealtimeWebSocket(how, client)
    : new OpenAIRealtimeWS(how, client);
  connection.on('event', (event) => story.saw(event));
  return new Promise((resolve, reject) => {
    connection.on('error', (error) => {
      // An error event of the server is told as an event; all else is a failure of the SDK.
      if (error.error === undefined) {
        story.tell({ sdk: 'error', error: `${error.message} ${error.cause ?? ''}` });
        reject(error);
      }
    });
    connection.socket.addEventListener('open', () => resolve(connection));
  });
}

await playAll(async (scenario, story) => {
  let client = new OpenAI({ baseURL: scenario.http_url, apiKey: scenario.key });
  if (scenario.client_secret) {
    const secret = await client.realtime.clientSecrets.create(scenario.client_secret);
    story.tell({ secret });
    client = client.withOptions({ apiKey: secret.value });
  }
  const { extra_query: query, ...rest } = scenario.connect;
  const connection = await connect(client, { ...rest, ...query }, story);
  for (const step of story.steps) {
    if (step.send) connection.send(story.filled(step.send));
    else if (step.audio) {
      connection.send({ type: 'input_audio_buffer.append', audio: step.audio });
    } else if (step.until) await story.until(step.until);
    else if (step.pause_ms) await pause(step.pause_ms);
    else throw new Error(`no step for this SDK: ${JSON.stringify(step)}`);
  }
  connection.close();
});
