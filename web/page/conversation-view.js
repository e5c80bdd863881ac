// The conversation as a list: one element per item, made once and changed in place. Follows what is
// new, unless the reader has scrolled up.

import { CallView } from './call-view.js';
import { MessageView } from './message-view.js';

const NEAR_END_PX = 48; // about two lines: so near, a reader means "the end"

export class ConversationView {
  #list;
  #scroller;
  #newest;
  #welcome;
  #views = new Map(); // item id -> MessageView | CallView
  #isFollowing = true;
  #lastTopPx = 0;
  #frame = 0;

  // list: the <ol>; scroller: what scrolls it; newest: the button back to the end; welcome: shown
  // while there is nothing.
  constructor({ list, scroller, newest, welcome }) {
    this.#list = list;
    this.#scroller = scroller;
    this.#newest = newest;
    this.#welcome = welcome;
    scroller.addEventListener('scroll', () => this.#noteScroll(), { passive: true });
    newest.addEventListener('click', () => {
      scroller.focus({ preventScroll: true }); // the button is about to vanish
      this.followNewest();
    });
    // A keyboard that comes up, a panel that opens, an unfolded call: the end stays in sight.
    const observer = new ResizeObserver(() => this.#follow());
    observer.observe(scroller);
    observer.observe(list);
  }

  clear() {
    this.#views.clear();
    this.#list.replaceChildren();
    this.#welcome.hidden = false;
    this.followNewest();
  }

  // Shows an item that is new or has changed; `items` are all of them, in order.
  show(item, items) {
    const view = this.#views.get(item.id);
    if (view) view.update(item);
    else this.#add(item, items);
  }

  light(item) {
    this.#views.get(item.id)?.light(item);
  }

  remove(id) {
    this.#views.get(id)?.element.remove();
    this.#views.delete(id);
    this.#welcome.hidden = this.#views.size > 0;
  }

  followNewest() {
    this.#isFollowing = true;
    this.#newest.hidden = true;
    this.#follow();
  }

  #add(item, items) {
    const view = item.kind === 'call' ? new CallView(item) : new MessageView(item);
    this.#views.set(item.id, view);
    this.#list.insertBefore(view.element, this.#placeOf(item, items));
    view.element.classList.add('is-new');
    this.#welcome.hidden = true;
  }

  // The element that the item comes before: that of the first later item that is shown. Nearly
  // always there is none.
  #placeOf(item, items) {
    for (let index = items.lastIndexOf(item) + 1; index > 0 && index < items.length; index += 1) {
      const view = this.#views.get(items[index].id);
      if (view) return view.element;
    }
    return null;
  }

  #noteScroll() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    const isUp = scrollTop < this.#lastTopPx;
    this.#lastTopPx = scrollTop;
    if (scrollHeight - scrollTop - clientHeight <= NEAR_END_PX) this.#isFollowing = true;
    else if (isUp) this.#isFollowing = false; // only a reader goes up: new text alone moves nothing
    this.#newest.hidden = this.#isFollowing;
  }

  #follow() {
    if (!this.#isFollowing || this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.#isFollowing) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    });
  }
}
