// The page's settings: kept in localStorage, taken from the address's fragment, told on.
//
// Everything is checked before it is taken: garbage in the storage or in a link changes nothing.

import { DEFAULTS, faultOf, merged } from './settings-rules.js';
import { changedNames, sessionOf } from './settings-session.js';
import { decodeSettings, encodeSettings, keyOf, withoutSettings } from './share-link.js';

const STORED_AS = 'parley.settings';
const REALTIME_PATH = '/v1/realtime';

// Dispatches 'change' with detail {before, values, names}: the names of what changed; and 'linkfault'
// when a link has brought a key that cannot be one.
export class SettingsStore extends EventTarget {
  #values = DEFAULTS;
  #window;
  #cameFromLink = false;
  #linkFault = null;

  // browser: for tests; what is used of a window is localStorage, location, history and events.
  constructor(browser = globalThis) {
    super();
    this.#window = browser;
    this.#values = merged(DEFAULTS, this.#read());
    this.#takeFragment();
    // A link that is opened where the page is open already changes only the fragment.
    browser.addEventListener?.('hashchange', () => this.#takeFragment());
  }

  get values() {
    return this.#values;
  }

  // Whether a link brought the present settings, other than the key.
  get cameFromLink() {
    return this.#cameFromLink;
  }

  // What is wrong with the last link's key, in words; or null.
  get linkFault() {
    return this.#linkFault;
  }

  // Takes what is valid of a patch, {voice: 'joe', turnDetection: {type: 'server_vad'}} for one.
  set(patch) {
    this.#take(merged(this.#values, patch));
  }

  // Everything but the key as the server has it.
  reset() {
    this.#take({ ...DEFAULTS, key: this.#values.key });
  }

  // For new Parley(): the address, the key, the session and the sound.
  parleyOptions() {
    const { key, microphoneId, codec, leadMs } = this.#values;
    return {
      url: this.#url(),
      key: key || null,
      session: this.session(),
      microphone: microphoneId ? { deviceId: microphoneId } : true,
      codec,
      leadMs,
    };
  }

  session() {
    return sessionOf(this.#values);
  }

  // The address of this page with these settings in it, without the key.
  link() {
    const { origin, pathname } = this.#window.location;
    return `${origin}${pathname}${encodeSettings(this.#values)}`;
  }

  #url() {
    const { protocol, host } = this.#window.location;
    const { model } = this.#values;
    const query = model ? `?${new URLSearchParams({ model })}` : '';
    return `${protocol === 'https:' ? 'wss' : 'ws'}://${host}${REALTIME_PATH}${query}`;
  }

  // What the fragment brings is kept, and leaves the address bar: a key is not for onlookers, and
  // settings would come back with every reload.
  #takeFragment() {
    const { hash, pathname, search } = this.#window.location;
    const left = withoutSettings(hash);
    if (left === hash || (left === '' && hash.length <= 1)) return;
    const key = keyOf(hash);
    const shared = decodeSettings(hash);
    this.#window.history.replaceState(this.#window.history.state, '', pathname + search + left);
    this.#cameFromLink ||= shared !== null;
    const fault = key === null ? null : faultOf('key', key);
    const isKey = key !== null && fault === null;
    this.#take({ ...this.#values, ...shared, ...(isKey ? { key } : {}) });
    this.#linkFault = fault && `The key in the link is not valid, and was not taken. ${fault}`;
    if (fault !== null) this.dispatchEvent(new CustomEvent('linkfault'));
  }

  #take(values) {
    const before = this.#values;
    const names = changedNames(before, values);
    if (!names.length) return;
    this.#values = values;
    this.#write();
    this.dispatchEvent(new CustomEvent('change', { detail: { before, values, names } }));
  }

  #read() {
    try {
      return JSON.parse(this.#window.localStorage.getItem(STORED_AS));
    } catch {
      return null; // the browser keeps nothing for this page, or what it kept is no JSON
    }
  }

  #write() {
    try {
      this.#window.localStorage.setItem(STORED_AS, JSON.stringify(this.#values));
    } catch {
      // Private windows may refuse: the settings then last as long as the page.
    }
  }
}
