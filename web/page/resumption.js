// What a reload needs to go on with the same conversation, kept in this tab alone.

const KEPT_AS = 'parley.resume';

// Keeps the token of a conversation that the server parks for withinMs from now on, and how the user
// took part: {hasMicrophone, isMuted}.
export function keepConversation(token, withinMs, part, now = Date.now()) {
  if (!token) return;
  try {
    sessionStorage.setItem(KEPT_AS, JSON.stringify({ ...part, token, until: now + withinMs }));
  } catch {
    // Without storage a reload begins a new conversation.
  }
}

export function dropConversation() {
  try {
    sessionStorage.removeItem(KEPT_AS);
  } catch {
    // There was none.
  }
}

// {token, hasMicrophone, isMuted} of a conversation that still lives, or null.
export function keptConversation(now = Date.now()) {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT_AS));
    return typeof kept?.token === 'string' && kept.until > now ? kept : null;
  } catch {
    return null;
  }
}

// Whether the microphone may be opened without asking; false where the browser does not tell.
export async function isMicrophoneGranted() {
  try {
    return (await navigator.permissions.query({ name: 'microphone' })).state === 'granted';
  } catch {
    return false;
  }
}

// Whether sound may begin without a press; where nothing is known, as after a reload, it may not.
export function maySoundUnasked() {
  return (
    navigator.userActivation?.hasBeenActive === true ||
    navigator.getAutoplayPolicy?.('audiocontext') === 'allowed'
  );
}
