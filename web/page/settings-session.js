// Settings as the session that the server is asked for, and what of a change a running one takes.
// Pure.

import { NAMES, SERVER_DEFAULTS, valueOf } from './settings-rules.js';

// A partial session object of the protocol; what is left to the server is left out.
export function sessionOf(values) {
  const input = filled({
    turn_detection: detectionOf(values.turnDetection),
    transcription: transcriptionOf(values),
  });
  const output = filled({ voice: values.voice || null });
  const audio = filled({ input, output });
  return filled({ instructions: values.instructions.trim() || null, audio }) ?? {};
}

// {session, later}: what a running conversation can be told of a change (null: nothing), and the
// names of the changed settings that wait for the next one.
export function changeOf(before, after) {
  const later = [];
  const parts = { instructions: null, turn_detection: null, transcription: null };
  for (const name of changedNames(before, after)) {
    const part = livePart(name);
    if (part !== null && isTellable(part, after)) parts[part] = toldOf(part, after);
    else later.push(name);
  }
  const { instructions, turn_detection, transcription } = parts;
  const input = filled({ turn_detection, transcription });
  return { session: filled({ instructions, audio: filled({ input }) }), later };
}

export function changedNames(before, after) {
  return NAMES.filter((name) => valueOf(before, name) !== valueOf(after, name));
}

// A voice is not among them: a conversation in which it has spoken keeps it.
function livePart(name) {
  if (name === 'instructions') return 'instructions';
  if (name.startsWith('turnDetection.')) return 'turn_detection';
  if (name === 'transcriptionModel' || name === 'language') return 'transcription';
  return null;
}

// The protocol has no word for "as you would have it", so going back to it needs a new session.
function isTellable(part, values) {
  if (part === 'instructions') return values.instructions.trim() !== '';
  if (part === 'turn_detection') return values.turnDetection.type !== '';
  return true;
}

function toldOf(part, values) {
  if (part === 'instructions') return values.instructions.trim();
  if (part === 'turn_detection') return detectionOf(values.turnDetection);
  return transcriptionOf(values) ?? { model: SERVER_DEFAULTS.transcriptionModel };
}

function detectionOf({ type, threshold, silence_duration_ms, prefix_padding_ms, eagerness }) {
  switch (type) {
    case 'server_vad':
      return filled({ type, threshold, silence_duration_ms, prefix_padding_ms });
    case 'semantic_vad':
      return filled({ type, eagerness: eagerness || null });
    default:
      return null;
  }
}

function transcriptionOf({ transcriptionModel, language }) {
  if (!transcriptionModel && !language) return null; // the client asks for the usual one
  const model = transcriptionModel || SERVER_DEFAULTS.transcriptionModel;
  return filled({ model, language: language || null });
}

// Without what is null; null if nothing is left.
function filled(parts) {
  const entries = Object.entries(parts).filter(([, value]) => value !== null);
  return entries.length ? Object.fromEntries(entries) : null;
}
