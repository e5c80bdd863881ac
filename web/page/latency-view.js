// Where the milliseconds between a question and its answer go: a stacked bar for each turn, the
// numbers of the chosen one beside the legend, and the running median.

import { make } from './elements.js';

const PARTS = ['end of turn', 'transcript', 'first token', 'first audio', 'network', 'buffer'];
const WORDS = {
  'end of turn': 'deciding that you have finished',
  transcript: 'writing down what you said',
  'first token': "the language model's first word",
  'first audio': 'the first words and their sound',
  network: 'the way to you',
  buffer: 'waiting in the loudspeaker',
};
const SHOWN_TURNS = 30; // more make a long page, and medians count all of them anyway
const SHORTEST_SCALE_MS = 500; // so that one quick turn does not look like a slow one

export class LatencyView {
  #root;
  #turns = new Map(); // by response, oldest first: {number, turn}
  #chosen = null; // a response's id; null: the newest
  #made = 0;

  constructor(root) {
    this.#root = make('div', { class: 'latency' });
    root.append(this.#root);
    this.#draw();
  }

  // turn: {responseId, status, totalMs, parts: [{name, ms}], isMeasured}; again when it has changed.
  show(turn) {
    const known = this.#turns.get(turn.responseId);
    this.#turns.set(turn.responseId, { number: known?.number ?? ++this.#made, turn });
    this.#draw();
  }

  clear() {
    this.#turns.clear();
    this.#chosen = null;
    this.#made = 0;
    this.#draw();
  }

  #draw() {
    const focused = this.#root.querySelector('.latency-turn:focus')?.dataset.response;
    const entries = [...this.#turns.values()];
    const measured = entries.map(({ turn }) => turn).filter(isMeasured);
    const title = make('h2', { class: 'latency-title' }, 'Latency');
    if (!measured.length) {
      const words =
        'From the end of what you say to the first sound of the answer. It appears here with the first answer.';
      this.#root.replaceChildren(title, make('p', { class: 'latency-empty' }, words));
      return;
    }
    const shown = entries.filter(({ turn }) => isMeasured(turn)).slice(-SHOWN_TURNS).reverse();
    const chosen = shown.find(({ turn }) => turn.responseId === this.#chosen) ?? shown[0];
    this.#root.replaceChildren(
      title,
      summary(measured),
      this.#legend(chosen, measured),
      this.#bars(shown, chosen, measured),
      table(shown),
    );
    if (focused) this.#root.querySelector(`[data-response="${CSS.escape(focused)}"]`)?.focus();
  }

  #legend({ number, turn }, measured) {
    const rows = PARTS.map((name) =>
      make(
        'tr',
        {},
        make('th', { scope: 'row', title: WORDS[name] }, swatch(name), name),
        make('td', {}, milliseconds(partMs(turn, name))),
        make('td', {}, milliseconds(median(measured.map((other) => partMs(other, name))))),
      ),
    );
    return make(
      'table',
      { class: 'latency-legend' },
      make('caption', { class: 'visually-hidden' }, `The parts of turn ${number}, and their medians`),
      headings(['Part', `Turn ${number}`, 'Median']),
      make('tbody', {}, rows),
    );
  }

  #bars(shown, chosen, measured) {
    const scaleMs = Math.max(SHORTEST_SCALE_MS, ...shown.map(({ turn }) => sumMs(turn)));
    const items = shown.map((entry) => make('li', {}, this.#bar(entry, scaleMs, entry === chosen)));
    const label = 'Turns, the newest first';
    const list = make('ol', { class: 'latency-bars', 'aria-label': label }, items);
    list.style.setProperty('--median', `${(100 * median(measured.map(totalMs))) / scaleMs}%`);
    return list;
  }

  #bar({ number, turn }, scaleMs, isChosen) {
    const choose = () => {
      this.#chosen = turn.responseId;
      this.#draw();
    };
    const attributes = {
      type: 'button',
      class: 'latency-turn',
      'data-response': turn.responseId,
      'aria-pressed': String(isChosen),
      onclick: choose,
    };
    const note = turn.status === 'cancelled' ? make('small', {}, ' interrupted') : null;
    return make(
      'button',
      attributes,
      make('span', { class: 'latency-name' }, `Turn ${number}`, note),
      make('span', { class: 'latency-total' }, milliseconds(totalMs(turn))),
      make('span', { class: 'latency-track' }, PARTS.map((name) => segment(turn, name, scaleMs))),
    );
  }
}

function segment(turn, name, scaleMs) {
  const ms = partMs(turn, name);
  if (ms === 0) return null;
  const box = make('span', { class: 'latency-part', 'data-part': name });
  box.style.width = `${(100 * ms) / scaleMs}%`;
  return box;
}

function summary(measured) {
  const totals = measured.map(totalMs);
  const over = totals.length === 1 ? 'one turn' : `median of ${totals.length} turns`;
  const figure = make('strong', {}, milliseconds(median(totals)));
  return make('p', { class: 'latency-median' }, figure, ` ${over}`);
}

// Every turn with every part, for those who do not see the bars.
function table(shown) {
  const rows = shown.map(({ number, turn }) => {
    const figures = [...PARTS.map((name) => partMs(turn, name)), totalMs(turn)];
    const cells = figures.map((ms) => make('td', {}, String(Math.round(ms))));
    return make('tr', {}, make('th', { scope: 'row' }, String(number)), cells);
  });
  return make(
    'table',
    { class: 'visually-hidden latency-table' },
    make('caption', {}, 'Latency of each turn in milliseconds, the newest first'),
    headings(['Turn', ...PARTS, 'total']),
    make('tbody', {}, rows),
  );
}

function headings(names) {
  const cells = names.map((name) => make('th', { scope: 'col' }, name));
  return make('thead', {}, make('tr', {}, cells));
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function isMeasured(turn) {
  return turn.isMeasured && Number.isFinite(totalMs(turn));
}

function totalMs(turn) {
  return turn.totalMs ?? NaN;
}

function partMs(turn, name) {
  const ms = turn.parts.find((part) => part.name === name)?.ms ?? 0;
  return Math.max(0, ms);
}

function sumMs(turn) {
  return PARTS.reduce((sum, name) => sum + partMs(turn, name), 0);
}

function milliseconds(ms) {
  return `${Math.round(ms).toLocaleString('en')} ms`;
}

function swatch(name) {
  return make('span', { class: 'latency-swatch', 'data-part': name, 'aria-hidden': 'true' });
}
