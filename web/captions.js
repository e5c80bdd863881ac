// What both sides say, one line per conversation item, in the order of the conversation.

export class Captions {
  constructor(list) {
    this.list = list;
    this.lines = new Map();
  }

  clear() {
    this.list.replaceChildren();
    this.lines.clear();
  }

  // role: user or assistant.
  begin(id, role) {
    if (this.lines.has(id)) return this.lines.get(id);
    const line = document.createElement('li');
    line.className = `${role} waiting`;
    line.textContent = '…';
    this.list.append(line);
    this.lines.set(id, line);
    this.follow();
    return line;
  }

  append(id, text) {
    const line = this.begin(id, 'assistant');
    if (line.classList.contains('waiting')) this.set(id, text);
    else line.textContent += text;
    this.follow();
  }

  set(id, text) {
    const line = this.lines.get(id);
    if (!line) return;
    line.classList.remove('waiting');
    line.textContent = text;
    this.follow();
  }

  cut(id) {
    this.lines.get(id)?.classList.add('cut');
  }

  remove(id) {
    this.lines.get(id)?.remove();
    this.lines.delete(id);
  }

  isWaiting(id) {
    return this.lines.get(id)?.classList.contains('waiting') ?? false;
  }

  follow() {
    this.list.scrollTop = this.list.scrollHeight;
  }
}
