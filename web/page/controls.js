// The dock: which of its controls there are in which state, and what the microphone really does.

const HZ_PER_KHZ = 1000;
const NO_BREAK_SPACE = '\u00a0';

export class Controls {
  #elements;

  // elements: {talk, talkWords, mute, useMicrophone, interrupt, hold, form, field, note}
  // actions: {talk, mute, useMicrophone, interrupt, say(text) -> Promise<whether it was taken>}
  constructor(elements, actions) {
    this.#elements = elements;
    const { talk, mute, useMicrophone, interrupt, form, field } = elements;
    for (const [button, act] of [
      [talk, actions.talk],
      [mute, actions.mute],
      [useMicrophone, actions.useMicrophone],
      [interrupt, actions.interrupt],
    ]) {
      button.addEventListener('click', (event) => {
        // Whoever clicks with a pointer has the space bar free for push-to-talk.
        if (event.detail > 0) button.blur();
        act();
      });
    }
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const text = field.value.trim();
      if (!text) return;
      field.value = '';
      if (!(await actions.say(text)) && !field.value) field.value = text; // not lost
    });
  }

  // isRunning: between "Start talking" and the end, losses of the line included.
  // isHeld: the microphone is open by push-to-talk, whose button a finger may lie on: it stays.
  show({ state, isRunning, isMuted, hasMicrophone, isHeld }) {
    const { talk, talkWords, mute, useMicrophone, interrupt, hold } = this.#elements;
    const isOpen = isRunning && state !== 'connecting';
    talk.setAttribute('aria-pressed', String(isRunning));
    setText(talkWords, isRunning ? (state === 'connecting' ? 'Cancel' : 'Stop') : 'Start talking');
    this.#hide(mute, !isOpen || !hasMicrophone);
    this.#hide(useMicrophone, !isOpen || hasMicrophone);
    this.#hide(interrupt, !isOpen);
    this.#hide(hold, !isOpen || !hasMicrophone || !(isMuted || isHeld));
    mute.setAttribute('aria-pressed', String(isMuted));
  }

  // What the browser really does with the microphone, not what it was asked for.
  showMicrophone(microphone, codec) {
    if (!microphone) {
      this.#note('');
      return;
    }
    const { echoCancellation, noiseSuppression, autoGainControl, sampleRate } = microphone.settings;
    const facts = [
      `Echo cancellation ${inWords(echoCancellation)}`,
      `noise suppression ${inWords(noiseSuppression)}`,
      `gain control ${inWords(autoGainControl)}`,
    ];
    if (sampleRate) facts.push(`${sampleRate / HZ_PER_KHZ} kHz`);
    if (codec) facts.push(codec === 'opus' ? 'Opus' : 'PCM');
    // A line breaks between two facts, behind the dot.
    const whole = facts.map((fact) => fact.replaceAll(' ', NO_BREAK_SPACE));
    this.#note(whole.join(`${NO_BREAK_SPACE}· `), microphone.label);
  }

  // What becomes of a lost line: unlike the facts, it is shown on the lowest screen too.
  showNews(words) {
    this.#note(words);
    this.#elements.note.classList.toggle('is-news', words !== '');
  }

  #note(words, title = '') {
    const { note } = this.#elements;
    note.classList.remove('is-news');
    note.title = title;
    setText(note, words);
  }

  // A control that goes while it has the focus hands it to the one that stays.
  #hide(element, isHidden) {
    if (element.hidden === isHidden) return;
    const hadFocus = element === document.activeElement;
    element.hidden = isHidden;
    if (isHidden && hadFocus) this.#elements.talk.focus();
  }
}

function inWords(setting) {
  if (setting === undefined || setting === null) return 'not told by the browser';
  return typeof setting === 'boolean' ? (setting ? 'on' : 'off') : `on (${setting})`;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
