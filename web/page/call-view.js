// One function call as a list item: its name and how it went; arguments and result unfold.

const STATUS_WORDS = { writing: 'being called', running: 'running', done: 'done', failed: 'failed' };

export class CallView {
  #details = document.createElement('details');
  #status = makeElement('span', 'call-status');
  #name = makeElement('code', 'call-name');
  #arguments = makeElement('pre', 'call-arguments');
  #result = makeElement('pre', 'call-result');

  constructor(item) {
    this.element = document.createElement('li');
    this.element.dataset.item = item.id;
    this.element.dataset.role = item.role;
    this.element.dataset.kind = 'call';
    const summary = document.createElement('summary');
    const label = makeElement('span', 'visually-hidden');
    label.textContent = 'Function call: ';
    summary.append(label, this.#name, this.#status);
    const list = document.createElement('dl');
    for (const [term, content] of [['Arguments', this.#arguments], ['Result', this.#result]]) {
      const title = document.createElement('dt');
      title.textContent = term;
      const value = document.createElement('dd');
      value.append(content);
      list.append(title, value);
    }
    this.#details.className = 'call';
    this.#details.append(summary, list);
    this.element.append(this.#details);
    this.update(item);
  }

  update({ call, isWaiting }) {
    this.element.classList.toggle('is-waiting', isWaiting);
    this.#details.dataset.status = call.status;
    setText(this.#name, call.name);
    setText(this.#status, STATUS_WORDS[call.status] ?? call.status);
    setText(this.#arguments, indent(call.arguments));
    setText(this.#result, call.output === null ? 'none yet' : indent(call.output));
  }

  light() {} // a call is not heard
}

function makeElement(tag, className) {
  const element = document.createElement(tag);
  element.className = className;
  element.dir = 'auto';
  return element;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// JSON for the eye; what is no JSON (yet) stays as it is.
function indent(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
