// What the page's settings are, which values each may have, and what is said of a wrong one. Pure.

export const DEFAULTS = freeze({
  voice: '', // empty, here and below: what the server has
  instructions: '',
  turnDetection: {
    type: '',
    threshold: null,
    silence_duration_ms: null,
    prefix_padding_ms: null,
    eagerness: '',
  },
  model: '',
  transcriptionModel: '',
  language: '',
  key: '',
  microphoneId: '', // the browser's usual one
  codec: 'auto',
  leadMs: null,
});

// What a server that is asked for nothing does (fields are empty then). The recogniser's is the name
// under which every server knows its own.
export const SERVER_DEFAULTS = freeze({
  threshold: 0.5,
  silence_duration_ms: 500,
  prefix_padding_ms: 300,
  eagerness: 'auto',
  transcriptionModel: 'whisper-1',
  leadMs: 120,
});

export const DETECTIONS = ['', 'semantic_vad', 'server_vad'];
export const EAGERNESSES = ['', 'low', 'medium', 'high', 'auto'];
export const CODECS = ['auto', 'opus', 'pcm'];

// The bounds are the server's: what lies outside of them, it refuses.
const VOICE_CHARACTERS = 256;
const INSTRUCTION_CHARACTERS = 100000;
const MODEL_CHARACTERS = 256;
const KEY_CHARACTERS = 512; // keys and client secrets are shorter by far
const DEVICE_CHARACTERS = 512; // a browser's ids have 64
const KEY = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/; // what a WebSocket's subprotocol can carry
const LANGUAGE = /^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/;

const RULES = {
  voice: text(VOICE_CHARACTERS),
  instructions: text(INSTRUCTION_CHARACTERS),
  'turnDetection.type': word(DETECTIONS),
  'turnDetection.threshold': number(0, 1, false),
  'turnDetection.silence_duration_ms': number(0, 60000, true),
  'turnDetection.prefix_padding_ms': number(0, 10000, true),
  'turnDetection.eagerness': word(EAGERNESSES),
  model: text(MODEL_CHARACTERS),
  transcriptionModel: text(MODEL_CHARACTERS),
  language: pattern(LANGUAGE, 35, 'Expected a code such as en, de or pt-BR.'),
  key: pattern(KEY, KEY_CHARACTERS, "A key has letters, digits and !#$%&'*+-.^_`|~ alone."),
  microphoneId: text(DEVICE_CHARACTERS),
  codec: word(CODECS),
  leadMs: number(40, 60000, true),
};

// Names as in RULES: a part of turnDetection is written with a dot.
export const NAMES = Object.keys(RULES);

// What is wrong with a value, in words; null: nothing.
export function faultOf(name, value) {
  return RULES[name](value);
}

export function valueOf(values, name) {
  const [first, second] = name.split('.');
  return second === undefined ? values?.[first] : values?.[first]?.[second];
}

export function withValue(values, name, value) {
  const [first, second] = name.split('.');
  const changed = second === undefined ? value : { ...values[first], [second]: value };
  return { ...values, [first]: changed };
}

// `known`, changed by whatever of `given` is valid. Anything may be given; it never throws.
export function merged(known, given) {
  return NAMES.reduce((values, name) => {
    const value = isPlain(given) ? valueOf(given, name) : undefined;
    const isGood = value !== undefined && faultOf(name, value) === null;
    return isGood ? withValue(values, name, value) : values;
  }, known);
}

function isPlain(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(limit) {
  return (value) => {
    if (typeof value !== 'string') return 'Expected a text.';
    return value.length > limit ? `At most ${limit} characters, please.` : null;
  };
}

function pattern(expression, limit, words) {
  return (value) => text(limit)(value) ?? (value === '' || expression.test(value) ? null : words);
}

function word(words) {
  return (value) => (words.includes(value) ? null : `Expected one of: ${words.join(', ')}.`);
}

function number(least, most, isWhole) {
  const words = `Expected ${isWhole ? 'a whole number' : 'a number'} from ${least} to ${most}.`;
  return (value) => {
    if (value === null) return null;
    const isGood = typeof value === 'number' && value >= least && value <= most;
    return isGood && (!isWhole || Number.isInteger(value)) ? null : words;
  };
}

function freeze(values) {
  for (const value of Object.values(values)) {
    if (typeof value === 'object' && value !== null) Object.freeze(value);
  }
  return Object.freeze(values);
}
