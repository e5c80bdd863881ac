// What a page asks of a conversation: completed with what is usual, and refused where it cannot be
// meant. Mistakes are told where they are made, in the constructor.

import { Sound } from './sound/context.js';
import { socketAddress } from './wire.js';

const CODECS = ['auto', 'opus', 'pcm'];
const LEAD_MS = { least: 40, most: 60000 }; // as the server has it
const PROTOCOLS = ['ws:', 'wss:'];

const USUAL = {
  url: null,
  key: null,
  session: {},
  microphone: true,
  codec: 'auto',
  leadMs: null,
  resume: null,
  tools: {},
  clock: () => performance.now(),
  fetch: (...request) => globalThis.fetch(...request),
  Sound,
};

/**
 * @param {object} options of a Parley; what is undefined is as usual, and null are no settings, no tools
 * @returns {object} all of them
 * @throws {TypeError | RangeError} in words that name the option
 */
export function completed(options) {
  const given = Object.entries(options ?? {}).filter(([, value]) => value !== undefined);
  const all = { ...USUAL, ...Object.fromEntries(given) };
  all.session ??= {};
  all.tools ??= {};
  checkUrl(all);
  checkLead(all);
  if (!CODECS.includes(all.codec)) {
    throw new RangeError(`codec must be one of ${CODECS.join(', ')}, not ${all.codec}.`);
  }
  for (const [name, tool] of Object.entries(all.tools)) {
    if (typeof tool?.call !== 'function') {
      throw new TypeError(`tools.${name}.call must be a function: it is what the tool does.`);
    }
  }
  return all;
}

function checkUrl({ url }) {
  if (url === null) return; // the page's own host
  let address;
  try {
    address = new URL(socketAddress(url, { resume: 'new' }));
  } catch {
    throw new TypeError(`url is no address of a server: ${url}`);
  }
  if (!PROTOCOLS.includes(address.protocol)) {
    throw new TypeError(`url must begin with wss:, ws:, https: or http:, not ${address.protocol}`);
  }
}

function checkLead({ leadMs }) {
  if (leadMs === null || leadMs === 'off') return;
  const { least, most } = LEAD_MS;
  if (typeof leadMs !== 'number' || !(leadMs >= least && leadMs <= most)) {
    throw new RangeError(
      `leadMs must be a number of milliseconds from ${least} to ${most}, 'off' or null, not ${leadMs}.`,
    );
  }
}
