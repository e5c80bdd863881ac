// What a session is told at its beginning: formats first, by themselves, so that no mistake in the
// rest of the settings can keep them from taking effect. Pure.

const TRANSCRIPTION = { model: 'whisper-1' }; // the server's own recogniser, under its usual name

/** The event ids of what is sent here, for errors about it. */
export const FORMATS_ID = 'setup_formats';

/**
 * @param {object} session partial, of the page
 * @param {{inputFormat: object, outputFormat: object}} sound
 * @returns {object} the event
 */
export function formatsUpdate(session, { inputFormat, outputFormat }) {
  const input = { format: inputFormat };
  // Captions of the user need it.
  if (session.audio?.input?.transcription === undefined) input.transcription = TRANSCRIPTION;
  const audio = { input, output: { format: outputFormat } };
  return { type: 'session.update', event_id: FORMATS_ID, session: { type: 'realtime', audio } };
}

/**
 * @param {object} session partial, of the page; its formats are left out, for sound has its own
 * @param {object[]} tools described, beside those of the session
 * @returns {object} the event
 */
export function sessionUpdate(session, tools = []) {
  const { audio, ...rest } = session;
  const update = { ...rest, type: 'realtime' };
  if (tools.length > 0 || session.tools) update.tools = [...(session.tools ?? []), ...tools];
  if (audio) {
    update.audio = {};
    for (const [side, { format, ...settings }] of Object.entries(audio)) update.audio[side] = settings;
  }
  return { type: 'session.update', session: update };
}

/** Whether a session that goes on has these formats. */
export function hasFormats(session, { inputFormat, outputFormat }) {
  const is = (side, wanted) => {
    const format = session.audio?.[side]?.format;
    return format?.type === wanted.type && format.rate === wanted.rate;
  };
  return is('input', inputFormat) && is('output', outputFormat);
}
