// One button: a conversation begins and ends. Events of the server become sound and captions.

import { MicrophoneError, Sound } from './audio.js';
import { Captions } from './captions.js';
import { Connection, decodeBase64, encodeBase64 } from './connection.js';

const page = Object.fromEntries(
  ['status', 'status-text', 'captions', 'problem', 'talk', 'talk-text', 'level-bar'].map((id) => [
    id,
    document.getElementById(id),
  ]),
);
const captions = new Captions(page.captions);

const DECISION_LIMIT_MS = 12000; // a recogniser on a busy machine has answered by then

let conversation = null; // { sound, connection, turn, playing, responding } while one runs
let isBusy = false; // between a press and its effect

page.talk.addEventListener('click', async () => {
  if (isBusy) return;
  isBusy = true;
  try {
    if (conversation) await end();
    else await begin();
  } finally {
    isBusy = false;
  }
});

async function begin() {
  showProblem(null);
  showState('connecting', 'Connecting');
  const live = { turn: null, playing: null, responding: null };
  try {
    live.sound = await Sound.open({
      onChunk: (pcm, peak) => listen(live, pcm, peak),
      onPlaying: (item) => notePlaying(live, item),
      onFlushed: (item, playedMs) => truncate(live, item, playedMs),
      onLost: () => fail(live, 'The microphone was unplugged.'),
    });
    live.connection = await Connection.open({
      onEvent: (event) => handle(live, event),
      onClosed: (message) => fail(live, message),
    });
  } catch (error) {
    await live.sound?.close();
    showState('failed', error instanceof MicrophoneError ? 'No microphone' : 'Not connected');
    showProblem(error.message);
    return;
  }
  conversation = live;
  captions.clear();
  live.connection.send({
    type: 'session.update',
    session: { type: 'realtime', audio: { input: { transcription: { model: 'whisper-1' } } } },
  });
  page.talk.setAttribute('aria-pressed', 'true');
  page['talk-text'].textContent = 'Stop';
  showState('listening', 'Listening');
}

async function end() {
  const live = conversation;
  conversation = null;
  page.talk.setAttribute('aria-pressed', 'false');
  page['talk-text'].textContent = 'Start talking';
  page['level-bar'].style.transform = 'scaleX(0)';
  showState('idle', 'Ready');
  live.connection.close();
  await live.sound.close();
}

async function fail(live, message) {
  if (conversation !== live) return;
  await end();
  showState('failed', 'Disconnected');
  showProblem(message);
}

function listen(live, pcm, peak) {
  if (conversation !== live) return;
  live.connection.send({ type: 'input_audio_buffer.append', audio: encodeBase64(pcm) });
  page['level-bar'].style.transform = `scaleX(${Math.min(1, peak * 1.5)})`;
}

function handle(live, event) {
  if (conversation && conversation !== live) return;
  switch (event.type) {
    case 'input_audio_buffer.speech_started':
      live.sound.flush();
      live.turn = event.item_id;
      captions.begin(event.item_id, 'user');
      showState('hearing', 'Hearing you');
      break;
    case 'input_audio_buffer.speech_stopped':
      live.turn = null;
      showState('thinking', 'Thinking');
      dropUnlessCommitted(event.item_id);
      break;
    case 'input_audio_buffer.committed':
      captions.begin(event.item_id, 'user').dataset.committed = 'true';
      break;
    case 'conversation.item.input_audio_transcription.completed':
      if (event.transcript.trim()) captions.set(event.item_id, event.transcript.trim());
      else captions.remove(event.item_id);
      break;
    case 'conversation.item.input_audio_transcription.failed':
      captions.set(event.item_id, '(not understood)');
      break;
    case 'response.created':
      live.responding = event.response.id;
      if (!live.turn) showState('thinking', 'Thinking');
      break;
    case 'response.output_audio.delta':
      live.sound.play(event.item_id, decodeBase64(event.delta));
      break;
    case 'response.output_audio_transcript.delta':
    case 'response.output_text.delta':
      captions.append(event.item_id, event.delta);
      break;
    case 'response.done':
      finish(live, event.response);
      break;
    case 'error':
      showProblem(event.error.message);
      break;
    default:
      break;
  }
}

function finish(live, response) {
  live.responding = null;
  for (const item of response.output) {
    if (response.status === 'cancelled') captions.cut(item.id);
  }
  if (response.status === 'failed') {
    showProblem(response.status_details?.error?.message ?? 'The answer failed.');
  }
  showIdleState(live);
}

// A turn without words is dropped by the server: speech_stopped comes, committed does not.
function dropUnlessCommitted(item) {
  setTimeout(() => {
    const line = captions.lines.get(item);
    if (line && !line.dataset.committed && captions.isWaiting(item)) captions.remove(item);
    if (conversation) showIdleState(conversation);
  }, DECISION_LIMIT_MS);
}

function notePlaying(live, item) {
  if (conversation !== live || item === live.playing) return;
  live.playing = item;
  showIdleState(live);
}

function showIdleState(live) {
  if (live.turn) return;
  if (live.playing) showState('speaking', 'Speaking');
  else if (live.responding) showState('thinking', 'Thinking');
  else showState('listening', 'Listening');
}

// What was not played was not heard: the conversation should not hold it.
function truncate(live, item, playedMs) {
  if (item === null) return;
  captions.cut(item);
  live.connection.send({
    type: 'conversation.item.truncate',
    item_id: item,
    content_index: 0,
    audio_end_ms: playedMs,
  });
}

function showState(state, text) {
  page.status.dataset.state = state;
  page['status-text'].textContent = text;
}

function showProblem(message) {
  page.problem.hidden = !message;
  page.problem.textContent = message ?? '';
}
