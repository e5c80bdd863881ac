// The state of the conversation in a word; the bars beside it are drawn by the style sheet.

const WORDS = {
  idle: 'Ready',
  connecting: 'Connecting',
  listening: 'Listening',
  hearing: 'Hearing you',
  thinking: 'Thinking',
  speaking: 'Speaking',
  held: 'One moment',
  reconnecting: 'Reconnecting',
  closed: 'Ended',
};

// Of the many changes of a conversation, those that a listener cannot hear.
const ANNOUNCED = new Set(['connecting', 'reconnecting', 'closed']);

export class StateView {
  #element;
  #words;
  #announcer;
  #state = 'idle';

  constructor({ element, words, announcer }) {
    this.#element = element;
    this.#words = words;
    this.#announcer = announcer;
  }

  show(state) {
    if (state === this.#state) return;
    const before = this.#state;
    this.#state = state;
    this.#element.dataset.state = state;
    document.body.dataset.state = state; // the dock changes with it
    this.#words.textContent = WORDS[state] ?? state;
    const isOpened = state === 'listening' && (before === 'connecting' || before === 'reconnecting');
    if (ANNOUNCED.has(state) || isOpened) this.#announcer.say(WORDS[state]);
  }
}
