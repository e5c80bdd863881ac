// What went wrong, in plain words, with the buttons that may put it right.

// Which remedies a problem offers; a code that is not here offers "Try again" if the conversation is over.
const REMEDIES = {
  microphone_denied: ['retry', 'type'],
  microphone_missing: ['retry', 'type'],
  microphone_busy: ['retry', 'type'],
  microphone_insecure: ['type'],
  microphone_failed: ['retry', 'type'],
  unauthorised: ['settings', 'retry'],
  link_key: ['settings'],
  session_over: ['anew'],
  sound_blocked: ['hear'],
};
const LABELS = {
  retry: 'Try again',
  anew: 'Start anew',
  type: 'Type instead',
  settings: 'Open settings',
  hear: 'Press to hear',
};

export class ProblemView {
  #element;
  #neighbour;
  #actions;

  // neighbour: gets the keyboard's focus when the button that had it goes; actions: {retry, anew,
  // type, settings, hear}: what each button does.
  constructor(element, neighbour, actions) {
    this.#element = element;
    this.#neighbour = neighbour;
    this.#actions = actions;
  }

  show({ code, message, isFatal }) {
    const words = document.createElement('span');
    words.className = 'words';
    words.textContent = message;
    const buttons = document.createElement('span');
    buttons.className = 'buttons';
    for (const remedy of remediesOf(code, isFatal)) {
      buttons.append(this.#makeButton(LABELS[remedy], this.#actions[remedy]));
    }
    const dismiss = this.#makeButton('×', () => {});
    dismiss.className = 'dismiss';
    dismiss.setAttribute('aria-label', 'Dismiss');
    buttons.append(dismiss);
    this.#element.dataset.code = code;
    this.#element.hidden = false; // first: an alert that appears with its words is not always read
    this.#element.replaceChildren(words, buttons);
  }

  get code() {
    return this.#element.hidden ? null : this.#element.dataset.code;
  }

  clear() {
    this.#element.hidden = true;
    this.#element.replaceChildren();
  }

  #makeButton(label, act) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = label;
    button.addEventListener('click', ({ detail }) => {
      const isByKeyboard = detail === 0;
      this.clear();
      if (isByKeyboard) this.#neighbour.focus();
      act();
    });
    return button;
  }
}

// The end of a conversation may also be that of an earlier one, where the next one runs already.
function remediesOf(code, isFatal) {
  if (code === 'session_over' && !isFatal) return [];
  return REMEDIES[code] ?? (isFatal ? ['retry'] : []);
}
