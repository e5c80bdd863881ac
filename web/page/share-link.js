// Settings as the fragment of an address, `#settings=BASE64URL`, and back. Pure.
//
// A link is for others: it never holds the key, nor the microphone, which is this machine's.

import { DEFAULTS, NAMES, merged, valueOf, withValue } from './settings-rules.js';

const FIELD = 'settings';
const PRIVATE = ['key', 'microphoneId'];
const SHARED = NAMES.filter((name) => !PRIVATE.includes(name));
const FRAGMENT_CHARACTERS = 600000; // the longest instructions in the widest letters, and more

// Only what differs from the defaults, so that links stay short.
export function encodeSettings(values) {
  const different = SHARED.filter((name) => valueOf(values, name) !== valueOf(DEFAULTS, name));
  const told = different.reduce((said, name) => withValue(said, name, valueOf(values, name)), {});
  const bytes = new TextEncoder().encode(JSON.stringify(told));
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
  const base64 = btoa(letters).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  return `#${FIELD}=${base64}`;
}

// Whole settings, with the default for whatever the link leaves out or has wrong; without key and
// microphone, which stay as they are. null: the fragment carries no settings that can be read.
export function decodeSettings(fragment) {
  const coded = fieldOf(fragment, FIELD);
  if (!coded || coded.length > FRAGMENT_CHARACTERS) return null;
  const told = parse(coded);
  if (typeof told !== 'object' || told === null || Array.isArray(told)) return null;
  const values = { ...merged(DEFAULTS, told) };
  for (const name of PRIVATE) delete values[name];
  return values;
}

// The key in a fragment, `#key=KEY`, or null. Not a form's encoding: "+" is itself in a key.
export function keyOf(fragment) {
  const text = fieldOf(fragment, 'key') || null;
  try {
    return text && decodeURIComponent(text);
  } catch {
    return text; // a "%" that stands for itself
  }
}

// A fragment without the fields that this page takes; '' where none are left.
export function withoutSettings(fragment) {
  const taken = [FIELD, 'key'];
  const left = fieldsOf(fragment).filter((part) => !taken.includes(part.split('=')[0]));
  return left.length ? `#${left.join('&')}` : '';
}

function fieldOf(fragment, name) {
  const field = fieldsOf(fragment).find((part) => part.startsWith(`${name}=`));
  return field?.slice(name.length + 1);
}

function fieldsOf(fragment) {
  const text = typeof fragment === 'string' ? fragment.replace(/^#/, '') : '';
  return text.split('&').filter(Boolean);
}

function parse(coded) {
  try {
    const letters = atob(coded.replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return null;
  }
}
