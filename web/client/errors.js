// The one kind of error that this client throws: a code for programs, a sentence for people.

// Codes: microphone_denied, microphone_missing, microphone_busy, microphone_insecure,
// microphone_failed, sound_blocked, unauthorised, full, starting, unreachable, refused,
// session_over, server_stopping.
export class ParleyError extends Error {
  constructor(code, message) {
    super(message);
    this.name = 'ParleyError';
    this.code = code;
  }
}
