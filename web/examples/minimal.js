import { Parley } from '../parley-client.js';

const [talk, state, said] = ['talk', 'state', 'said'].map((id) => document.getElementById(id));
let parley = null; // the conversation that runs

talk.addEventListener('click', () => {
  if (parley) return end(parley);
  const mine = (parley = new Parley({ session: { instructions: 'Answer in one short sentence.' } }));
  talk.textContent = 'Stop';
  mine.addEventListener('state', ({ detail }) => parley === mine && (state.textContent = detail.state));
  mine.addEventListener('item', () => {
    said.textContent = mine.items.map(({ role, text }) => `${role}: ${text}`).join('\n');
  });
  mine.addEventListener('closed', ({ detail }) => end(mine, detail.message));
  return mine.connect().catch((error) => end(mine, error.message));
});

function end(mine, message) {
  if (parley === mine) [parley, talk.textContent, state.textContent] = [null, 'Talk', message ?? ''];
  mine.close();
}
