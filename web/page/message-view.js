// One message as a list item: its words light up as they are heard, and are struck from where it was cut.

import { cutWords, splitWords } from './words.js';

const SPEAKERS = { user: 'You: ', assistant: 'Parley: ', system: 'Note: ' };
const FAILED_WORDS = '(not understood)'; // a turn of the user that is over and has no text

export class MessageView {
  #text = document.createElement('p');
  #note = null;
  #dots = null;
  #words = []; // {start, end, node}
  #shown = '';
  #cut = null;
  #litWords = 0; // the words before this one are lit
  #struck = null;

  constructor(item) {
    this.element = document.createElement('li');
    this.element.dataset.item = item.id;
    this.element.dataset.role = item.role;
    this.element.dataset.kind = 'message';
    const speaker = document.createElement('span');
    speaker.className = 'visually-hidden';
    speaker.textContent = SPEAKERS[item.role] ?? '';
    this.#text.className = 'text';
    this.#text.dir = 'auto';
    this.element.append(speaker, this.#text);
    this.update(item);
  }

  update(item) {
    const { classList } = this.element;
    classList.toggle('is-waiting', item.isWaiting);
    classList.toggle('is-interim', item.isInterim);
    classList.toggle('is-typed', item.isTyped);
    this.#showDots(item.isWaiting);
    const text = wordsOf(item);
    const cut = placeOfCut(item, text);
    if (cut !== this.#cut) this.#clear();
    this.#cut = cut;
    this.#write(text);
    this.light(item);
    this.#showNote(item.cut === null ? '' : 'Interrupted'); // even where nothing is left to strike
  }

  // Lights what was heard. Words only ever become lit, save when an item's text is written anew.
  light(item) {
    const until = this.#cut === null ? item.heard : Math.min(item.heard, this.#cut);
    while (this.#litWords > 0 && this.#words[this.#litWords - 1].start >= until) {
      this.#litWords -= 1;
      this.#words[this.#litWords].node.classList.remove('heard');
    }
    while (this.#litWords < this.#words.length && this.#words[this.#litWords].start < until) {
      this.#words[this.#litWords].node.classList.add('heard');
      this.#litWords += 1;
    }
  }

  // Keeps every word that stays as it was: a long reply grows at the price of what is new.
  #write(text) {
    if (text === this.#shown) return;
    let same = 0;
    const limit = Math.min(text.length, this.#shown.length);
    while (same < limit && text[same] === this.#shown[same]) same += 1;
    while (this.#words.length && this.#words.at(-1).end >= same) this.#words.pop().node.remove();
    this.#litWords = Math.min(this.#litWords, this.#words.length);
    const from = this.#words.at(-1)?.end ?? 0;
    for (const { start, end } of cutWords(splitWords(text, from), this.#cut)) {
      const node = document.createElement('span');
      node.className = 'word';
      node.textContent = text.slice(start, end);
      this.#placeFor(start).append(node);
      this.#words.push({ start, end, node });
    }
    this.#shown = text;
  }

  #placeFor(start) {
    if (this.#cut === null || start < this.#cut) return this.#text;
    if (!this.#struck) {
      this.#struck = document.createElement('s');
      this.#struck.className = 'struck unheard';
      this.#text.append(this.#struck);
    }
    return this.#struck;
  }

  #clear() {
    this.#text.replaceChildren();
    this.#words = [];
    this.#litWords = 0;
    this.#shown = '';
    this.#struck = null;
  }

  #showDots(isShown) {
    if (isShown && !this.#dots) {
      this.#dots = document.createElement('span');
      this.#dots.className = 'dots';
      this.#dots.setAttribute('role', 'img');
      this.#dots.setAttribute('aria-label', 'waiting for words');
      for (let dot = 0; dot < 3; dot += 1) this.#dots.append(document.createElement('i'));
      this.#text.before(this.#dots);
    } else if (!isShown) {
      this.#dots?.remove();
      this.#dots = null;
    }
    this.#text.hidden = isShown;
  }

  #showNote(words) {
    if (words && !this.#note) {
      this.#note = document.createElement('p');
      this.#note.className = 'note';
      this.element.append(this.#note);
    }
    if (this.#note) {
      this.#note.textContent = words;
      this.#note.hidden = !words;
    }
  }
}

// The line through a text ends with its last word, not with the space behind it.
function wordsOf({ role, text, cut, isWaiting, isInterim }) {
  if (isWaiting) return '';
  if (cut !== null) return text.trimEnd();
  return text || (role === 'user' && !isInterim ? FAILED_WORDS : '');
}

// Where the line through the text begins: null if all of it stands; not at a space, where it would
// look like a dash.
function placeOfCut({ cut }, text) {
  if (cut === null) return null;
  const place = cut + text.slice(cut).search(/\S|$/);
  return place < text.length ? place : null;
}
