// The server's voices over HTTP: list, add, delete.

const PATH = '/v1/audio/voices';

// A request that the server refused, or that did not reach it; the message says what to do.
export class VoicesError extends Error {}

// {data: [{name, kind: 'configured' | 'uploaded', available, duration_ms?}], can_copy}, the default
// voice first.
export async function listVoices(key) {
  return ask('GET', PATH, key);
}

// voice: {name, recording: Blob, transcript, consent}; gives the voice as it is listed.
export async function addVoice(key, { name, recording, transcript, consent }) {
  const form = new FormData();
  form.append('name', name);
  form.append('audio_sample', recording, recording.name ?? 'recording');
  if (transcript) form.append('transcript', transcript);
  form.append('consent', consent);
  return ask('POST', PATH, key, form);
}

export async function deleteVoice(key, name) {
  return ask('DELETE', `${PATH}/${encodeURIComponent(name)}`, key);
}

async function ask(method, path, key, body) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  let response;
  try {
    response = await fetch(path, { method, headers, body, cache: 'no-store' });
  } catch {
    throw new VoicesError('The server does not answer. Is it running?');
  }
  const told = await response.json().catch(() => null);
  if (response.ok && told) return told;
  if (response.status === 401) {
    throw new VoicesError('The server wants a key that it knows: enter it under “Connection”.');
  }
  throw new VoicesError(told?.error?.message ?? `The server refused it (${response.status}).`);
}
