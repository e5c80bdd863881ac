import { Parley } from '../parley-client.js';

const [talk, state, said] = ['talk', 'state', 'said'].map((id) => document.getElementById(id));
let parley = null;

talk.addEventListener('click', () => {
  if (parley) return parley.close();
  talk.textContent = 'Stop';
  parley = new Parley({ session: { instructions: 'Answer in one short sentence.' } });
  parley.addEventListener('state', ({ detail }) => (state.textContent = detail.state));
  parley.addEventListener('item', ({ target }) => {
    said.textContent = target.items.map(({ role, text }) => `${role}: ${text}`).join('\n');
  });
  parley.addEventListener('closed', ({ detail }) => end(detail.message));
  return parley.connect().catch((error) => end(error.message));
});

function end(message) {
  parley = null;
  talk.textContent = 'Talk';
  state.textContent = message ?? '';
}
