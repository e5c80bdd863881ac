// How things are written on the wire: bytes, addresses, keys, formats and the reasons for a close.

const PATH = '/v1/realtime';
const SUBPROTOCOL = 'realtime';
const KEY_PROTOCOL = 'openai-insecure-api-key.';
const SPREAD_BYTES = 8192; // as many arguments as every browser takes in one call
const PCM_SAMPLE_BYTES = 2;
const MS_PER_SECOND = 1000;

/** The close of a socket whose conversation another page goes on with: the server's own code. */
export const TAKEN_OVER = 4001;

/** The close of a socket that has brought a message of too many bytes; RFC 6455, 7.4.1. */
export const TOO_LARGE = 1009;

const CLOSE_REASONS = {
  1001: 'It has ended the conversation.',
  1006: 'The connection to the server was lost.',
  [TOO_LARGE]: 'A message was too large for the server: it was not taken, and nothing of it arrived.',
  1011: 'The server has met an error of its own. Its log says which.',
  1013: 'The server is full: all its conversations are taken. Try again in a moment.',
};

/** Bytes as base64. @param {Uint8Array} bytes @returns {string} */
export function encodeBase64(bytes) {
  let text = '';
  for (let at = 0; at < bytes.length; at += SPREAD_BYTES) {
    text += String.fromCharCode(...bytes.subarray(at, at + SPREAD_BYTES));
  }
  return btoa(text);
}

/** The bytes of a base64 text; throws a DOMException where it is none. @returns {Uint8Array} */
export function decodeBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/**
 * How long a delta of audio plays, without decoding it.
 * @param {string} base64 whole samples of PCM16, or one Opus packet
 * @param {{type: string, rate?: number}} format as the session has it
 * @returns {number} milliseconds
 */
export function audioMs(base64, format) {
  if (format.type === 'audio/opus') return opusPacketMs(base64);
  const padding = base64.endsWith('==') ? 2 : Number(base64.endsWith('='));
  const bytes = (base64.length * 3) / 4 - padding;
  return (bytes / PCM_SAMPLE_BYTES / (format.rate ?? 24000)) * MS_PER_SECOND;
}

// RFC 6716, 3.1: the first byte of a packet tells the length of its frames and their number, the
// second their number where the first leaves it open.
function opusPacketMs(base64) {
  const [first, second = 0] = decodeBase64(base64.slice(0, 4));
  if (first === undefined) return 0;
  const configuration = first >> 3;
  let frameMs;
  if (configuration < 12) frameMs = [10, 20, 40, 60][configuration & 3];
  else if (configuration < 16) frameMs = [10, 20][configuration & 1];
  else frameMs = [2.5, 5, 10, 20][configuration & 3];
  const frames = [1, 2, 2, second & 63][first & 3];
  return frameMs * frames;
}

/**
 * The address of the conversation's WebSocket.
 * @param {string | null | undefined} url of the server or of its endpoint, http or ws; relative to
 *     the page, whose own host it is by default
 * @param {{resume: string, leadMs?: number | 'off' | null}} query
 * @returns {string}
 */
export function socketAddress(url, { resume, leadMs = null }, page = globalThis.location?.href) {
  const address = new URL(url ?? PATH, page);
  address.protocol = address.protocol.replace('http', 'ws');
  if (address.pathname === '/') address.pathname = PATH;
  address.hash = '';
  address.searchParams.set('details', 'on');
  address.searchParams.set('resume', resume);
  if (leadMs !== null) address.searchParams.set('lead_ms', String(leadMs));
  return address.href;
}

/** The address of a page of the same server, for plain requests. */
export function pageAddress(socketUrl, path) {
  const address = new URL(path, socketUrl);
  address.protocol = address.protocol.replace('ws', 'http');
  return address.href;
}

/** What a browser offers as subprotocols: the only place where its WebSocket can show a key. */
export function subprotocols(key) {
  return key ? [SUBPROTOCOL, KEY_PROTOCOL + key] : [SUBPROTOCOL];
}

/** Why a WebSocket was closed; the server's own words go before what its code says in general. */
export function explainClose(code, reason) {
  return reason || CLOSE_REASONS[code] || `The server has ended the conversation (code ${code}).`;
}
