// A page with a tool: the language model calls a function of this page, and answers with its result.

import { Parley } from '../parley-client.js';

const INSTRUCTIONS =
  'You tell people about the weather, in one short spoken sentence. For each question about the weather of a city call get_weather with that city. If you do not know the city, ask for it.';
const SKIES = ['clear', 'partly cloudy', 'overcast', 'light rain', 'showers'];

const tools = {
  get_weather: {
    description: 'The present weather in a city.',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string', description: 'The name of the city, such as Paris.' } },
      required: ['city'],
    },
    call: getWeather,
  },
};

const [talk, state, ask, question, problem, conversation] = [
  'talk',
  'state',
  'ask',
  'question',
  'problem',
  'conversation',
].map((id) => document.getElementById(id));
let parley = null; // the conversation that runs
let opening = null; // its beginning

talk.addEventListener('click', () => (parley ? end(parley) : start(true)));

ask.addEventListener('submit', async (event) => {
  event.preventDefault();
  const text = question.value.trim();
  if (!text) return;
  question.value = '';
  if (!parley) start(false);
  await opening;
  parley?.say(text);
});

// What a weather service would answer: made up, and the same for a city all day.
export function getWeather({ city }, day = new Date().toDateString()) {
  if (typeof city !== 'string' || !city.trim()) throw new Error('Say which city is meant.');
  let seed = 7;
  for (const letter of city.trim().toLowerCase() + day) seed = (seed * 31 + letter.codePointAt(0)) % 99991;
  return {
    city: city.trim(),
    sky: SKIES[seed % SKIES.length],
    temperature_celsius: 4 + (seed % 23),
    wind_km_per_hour: 3 + (seed % 29),
    source: 'made up for this example',
  };
}

function start(microphone) {
  problem.hidden = true;
  conversation.replaceChildren();
  const mine = new Parley({ microphone, tools, session: { instructions: INSTRUCTIONS } });
  parley = mine;
  talk.textContent = 'Stop';
  // What an earlier conversation still tells concerns nobody.
  const on = (type, act) =>
    mine.addEventListener(type, ({ detail }) => {
      if (parley === mine) act(detail);
    });
  on('state', (detail) => (state.textContent = detail.state));
  on('item', ({ item }) => show(item));
  on('call', ({ item }) => show(item));
  on('itemremoved', ({ id }) => lineOf(id)?.remove());
  on('problem', ({ message }) => tell(message));
  on('closed', ({ message }) => end(mine, message));
  opening = mine.connect().catch((error) => end(mine, error.message));
}

function end(mine, message) {
  if (parley !== mine) return;
  parley = null;
  talk.textContent = 'Talk';
  state.textContent = '';
  if (message) tell(message);
  mine.close();
}

function tell(message) {
  problem.textContent = message;
  problem.hidden = false;
}

function show(item) {
  const line = lineOf(item.id) ?? document.createElement('li');
  line.dataset.item = item.id;
  line.className = item.kind === 'call' ? 'call' : item.role;
  if (item.call) {
    line.replaceChildren(code(`${item.call.name}(${item.call.arguments})`), ' gave ', code(item.call.output ?? '…'));
  } else {
    line.textContent = item.text || '…';
  }
  if (!line.isConnected) conversation.append(line);
}

function lineOf(id) {
  return conversation.querySelector(`[data-item="${CSS.escape(id)}"]`);
}

function code(text) {
  const element = document.createElement('code');
  element.textContent = text;
  return element;
}
