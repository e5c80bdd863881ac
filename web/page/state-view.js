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
  #ending;
  #announcer;
  #state = 'idle';

  // ending: what the end means for what was said; shown from then on, and read out once.
  constructor({ element, words, ending, announcer }) {
    this.#element = element;
    this.#words = words;
    this.#ending = ending;
    this.#announcer = announcer;
  }

  // isMuted, hasMicrophone: whether the microphone hears; hasItems: whether there is something to keep.
  show({ state, isMuted, hasMicrophone, hasItems }) {
    const words = wordsOf(state, isMuted, hasMicrophone);
    if (words !== this.#words.textContent) this.#words.textContent = words;
    if (state === this.#state) return;
    const before = this.#state;
    this.#state = state;
    this.#element.dataset.state = state;
    document.body.dataset.state = state; // the dock changes with it
    this.#ending.hidden = state !== 'closed' || !hasItems;
    const isOpened = state === 'listening' && (before === 'connecting' || before === 'reconnecting');
    if (!ANNOUNCED.has(state) && !isOpened) return;
    this.#announcer.say(this.#ending.hidden ? words : this.#ending.textContent);
  }
}

// Nobody listens through a microphone that is muted or not there.
function wordsOf(state, isMuted, hasMicrophone) {
  if (state === 'listening' && !hasMicrophone) return 'Ready to read';
  if (state === 'listening' && isMuted) return 'Muted';
  return WORDS[state] ?? state;
}
