// Drives RealtimeSession of the npm package `@openai/agents-realtime` over its WebSocket transport.

import { OpenAIRealtimeWebSocket, RealtimeAgent, RealtimeSession, tool } from '@openai/agents-realtime';
import { pause, playAll } from './steps.mjs';

const getWeather = tool({
  name: 'get_weather',
  description: 'How the weather is in a city.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
  strict: false,
  execute: async ({ city }) => `sunny in ${city}`,
});

const SDK_EVENTS = [
  'agent_start', 'agent_end', 'agent_tool_start', 'agent_tool_end', 'audio_start',
  'audio_stopped', 'audio_interrupted', 'history_added',
];

/** Tells every server event, and `ignored` for those that the SDK's own schema does not take. */
function watch(session, story) {
  const taken = new Set();
  // An `error` is handed on inside another, which the SDK makes for faults of its own too.
  const listening = new Set(['error']);
  session.transport.on('error', (wrapped) => taken.add(wrapped.error?.event_id));
  session.transport.on('*', (event) => {
    if (!listening.has(event.type)) {
      listening.add(event.type);
      session.transport.on(event.type, (parsed) => taken.add(parsed.event_id));
    }
    // The typed event follows at once if the schema took the raw one.
    queueMicrotask(() => {
      const isTaken = taken.has(event.event_id);
      story.tell({ sdk: isTaken ? 'taken' : 'ignored', error: isTaken ? '' : event.type });
    });
    story.saw(event);
  });
  for (const name of SDK_EVENTS) {
    session.on(name, () => story.tell({ sdk: name, error: '' }));
  }
  session.on('error', (error) => story.tell({ sdk: 'error', error: JSON.stringify(error) }));
}

await playAll(async (scenario, story) => {
  const agent = new RealtimeAgent({
    name: 'Guide',
    instructions: 'Be kind.',
    tools: scenario.has_tool ? [getWeather] : [],
  });
  const session = new RealtimeSession(agent, {
    transport: new OpenAIRealtimeWebSocket({ useInsecureApiKey: true }),
    model: 'parley',
    config: scenario.session,
  });
  watch(session, story);
  await session.connect({ apiKey: scenario.key, url: scenario.socket_url });
  for (const step of story.steps) {
    if (step.send) session.transport.sendEvent(story.filled(step.send));
    else if (step.message) session.sendMessage(step.message);
    else if (step.audio) session.sendAudio(Uint8Array.from(Buffer.from(step.audio, 'base64')).buffer);
    else if (step.interrupt) session.interrupt();
    else if (step.until) await story.until(step.until);
    else if (step.pause_ms) await pause(step.pause_ms);
    else throw new Error(`no step for this SDK: ${JSON.stringify(step)}`);
  }
  story.tell({ history: session.history });
  session.close();
});
