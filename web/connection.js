// The wire: JSON events both ways over one WebSocket.

const OPEN_TIMEOUT_MS = 10000;
const CLOSE_REASONS = {
  1001: 'The server is shutting down.',
  1006: 'The connection to the server was lost.',
  1013: 'The server is busy: all its conversations are taken. Try again in a moment.',
};

export class Connection {
  // onEvent(event), onClosed(message or null)
  static open({ onEvent, onClosed }) {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const key = keyOf(location.hash);
    const protocols = ['realtime', ...(key ? [`openai-insecure-api-key.${key}`] : [])];
    const socket = new WebSocket(`${scheme}://${location.host}/v1/realtime`, protocols);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => socket.close(), OPEN_TIMEOUT_MS);
      socket.onopen = () => {
        clearTimeout(timer);
        const connection = new Connection(socket);
        socket.onmessage = ({ data }) => onEvent(JSON.parse(data));
        socket.onclose = ({ code, reason }) => {
          if (!connection.isClosed) onClosed(explainClose(code, reason));
        };
        resolve(connection);
      };
      socket.onclose = async () => {
        clearTimeout(timer);
        reject(new Error(await explainRefusal()));
      };
    });
  }

  constructor(socket) {
    this.socket = socket;
    this.isClosed = false;
  }

  send(event) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(event));
  }

  close() {
    this.isClosed = true;
    this.socket.close();
  }
}

// The key in the page's address, `#key=KEY`, or null. Not a form's encoding: "+" is itself in a key.
export function keyOf(hash) {
  const field = hash.slice(1).split('&').find((part) => part.startsWith('key='));
  const text = field?.slice('key='.length) || null;
  try {
    return text && decodeURIComponent(text);
  } catch {
    return text; // a "%" that stands for itself
  }
}

// The server's own words go before what its code says in general.
export function explainClose(code, reason) {
  return reason || CLOSE_REASONS[code] || `The server ended the conversation (${code}).`;
}

// A browser hides why a WebSocket was refused; the health page can often say it.
async function explainRefusal() {
  try {
    const response = await fetch('/health', { cache: 'no-store' });
    if (response.ok) {
      return 'The server refused the conversation. It may be full, or want a key: open this page with #key=YOUR_KEY.';
    }
    const { loading, error } = await response.json();
    if (error) return error.message;
    return `The server is still starting: ${loading ?? 'loading its models'}. Try again in a moment.`;
  } catch {
    return 'The server does not answer. Is it running?';
  }
}

export function encodeBase64(pcm) {
  const bytes = new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

export function decodeBase64(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Int16Array(bytes.buffer, 0, bytes.length >> 1);
}
