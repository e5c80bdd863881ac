// One item of the conversation, as programs see it: the same object for all its life.

/**
 * @typedef {object} Item
 * @property {string} id
 * @property {'user' | 'assistant' | 'system'} role
 * @property {'message' | 'call'} kind
 * @property {string} text
 * @property {number} heard how many characters have been heard; of what the user says, all
 * @property {boolean} isWaiting there is nothing to show yet
 * @property {boolean} isInterim the text may still change or grow
 * @property {boolean} isTyped
 * @property {number | null} cut the number of characters after which it was cut off
 * @property {Call | null} call
 * @property {string | null} responseId
 * @property {number} at when it began: epoch milliseconds
 *
 * @typedef {object} Call
 * @property {string} id
 * @property {string} name
 * @property {string} arguments JSON
 * @property {string | null} output
 * @property {'writing' | 'running' | 'done' | 'failed'} status
 */

/** @returns {Item} one without text */
export function newItem(id, role, kind, at) {
  return {
    id,
    role,
    kind,
    text: '',
    heard: 0,
    isWaiting: true,
    isInterim: true,
    isTyped: false,
    cut: null,
    call: null,
    responseId: null,
    at,
  };
}

/** @returns {Item} a function call, from the item of the wire */
export function newCall(wire, at) {
  const call = {
    id: wire.call_id,
    name: wire.name ?? '',
    arguments: wire.arguments ?? '',
    output: null,
    status: 'writing',
  };
  return { ...newItem(wire.id, 'assistant', 'call', at), isWaiting: false, isInterim: false, call };
}

/** The text of a message of the wire; null where it is speech whose text is not known yet. */
export function contentText({ content = [] }) {
  const isUnheard = content.some((part) => part.type === 'input_audio' && part.transcript === null);
  const texts = content.map((part) => part.text ?? part.transcript ?? '').filter(Boolean);
  if (isUnheard && !texts.length) return null;
  return texts.join('\n');
}
