// The page: one conversation at a time, its events to the views, its controls to the conversation.

import { Parley } from '../parley-client.js';
import { Announcer } from './announcer.js';
import { Controls } from './controls.js';
import { ConversationView } from './conversation-view.js';
import { Downloads } from './downloads.js';
import { LatencyView } from './latency-view.js';
import { Meters } from './meters.js';
import { bindPanels, closePanel } from './panels.js';
import { ProblemView } from './problem-view.js';
import { PushToTalk } from './push-to-talk.js';
import {
  dropConversation,
  isMicrophoneGranted,
  keepConversation,
  keptConversation,
  maySoundUnasked,
} from './resumption.js';
import { SettingsStore } from './settings-store.js';
import { SettingsView } from './settings-view.js';
import { StateView } from './state-view.js';

const REPEAT_MS = 1500; // a resumed conversation has been told anew by then

const byId = (id) => document.getElementById(id);

let parley = null; // the conversation that is shown, running or over
let opening = null; // its connect(), while that is under way
let lastChoices = {}; // with which a conversation is still to be begun, other than the settings
let resumeWithinMs = 0; // how long the server keeps a lost conversation
let mutedForVoice = null; // the conversation that does not hear a voice that is recorded

const store = new SettingsStore();
const announcer = new Announcer(byId('announcer'));
const conversation = new ConversationView({
  list: byId('conversation'),
  scroller: byId('scroller'),
  newest: byId('newest'),
  welcome: byId('welcome'),
});
const stateView = new StateView({
  element: byId('state'),
  words: byId('state-words'),
  ending: byId('ending'),
  announcer,
});
const latency = new LatencyView(byId('latency'));
const meters = new Meters({
  bars: { input: byId('input-level').firstElementChild, output: byId('output-level').firstElementChild },
  glow: [byId('state'), byId('talk')],
  read: () => parley?.levels,
});
const problem = new ProblemView(byId('problem'), byId('talk'), {
  retry,
  anew: () => start(),
  type: () => byId('say-text').focus(),
  settings: () => settings.open(),
  hear: () => start(lastChoices), // nothing if it runs: the press alone is what the browser waited for
});
const controls = new Controls(
  {
    talk: byId('talk'),
    talkWords: byId('talk-words'),
    mute: byId('mute'),
    useMicrophone: byId('use-microphone'),
    interrupt: byId('interrupt'),
    hold: byId('hold-to-talk'),
    form: byId('say'),
    field: byId('say-text'),
    note: byId('microphone-note'),
  },
  {
    talk: () => (isRunning() ? stop() : talk()),
    mute: () => setMuted(!parley.isMuted),
    useMicrophone: () => useMicrophone(store.parleyOptions().microphone),
    interrupt: () => parley.interrupt(),
    say,
  },
);
const pushToTalk = new PushToTalk({
  button: byId('hold-to-talk'),
  isWanted: () => isRunning() && opening === null && parley.microphone !== null && parley.isMuted,
  onPress: () => setMuted(false),
  onRelease: () => setMuted(true),
});
const settings = new SettingsView(byId('settings'), store, {
  onApply: (session) => isRunning() && opening === null && parley.update(session),
  onMicrophone: (choice) => isRunning() && parley.microphone !== null && useMicrophone(choice),
  onVoice: keepFromConversation,
});
new Downloads(byId('downloads'), () => parley); // looks after itself
bindPanels(settings);

function isRunning() {
  return parley !== null && parley.state !== 'idle' && parley.state !== 'closed';
}

// choices: options of Parley over those of the settings; isMuted: the microphone begins so.
async function start({ isMuted = false, ...choices } = {}) {
  if (isRunning()) return;
  problem.clear();
  announcer.clear();
  conversation.clear();
  latency.clear();
  if (!choices.resume) dropConversation();
  lastChoices = { isMuted, ...choices };
  const mine = new Parley({ ...store.parleyOptions(), ...choices });
  parley = mine;
  globalThis.parley = mine; // for the browser's console
  listen(mine);
  if (isMuted) mine.mute();
  opening = mine.connect();
  try {
    await opening;
    if (parley === mine) lastChoices = {};
  } catch (error) {
    const isCancelled = mine.state === 'closed'; // by stop(): no problem
    if (parley === mine && !isCancelled) {
      problem.show({ code: error.code, message: error.message, isFatal: true });
    }
  } finally {
    if (parley === mine) opening = null;
  }
  showControls();
}

// A conversation that a reload has kept goes on; whoever presses this button wants to speak in it.
function talk() {
  const { resume } = lastChoices;
  return start(resume && keptConversation() ? { resume } : {});
}

// What is lacking may also be the microphone of a conversation that goes on.
function retry() {
  if (isRunning()) useMicrophone(store.parleyOptions().microphone);
  else start(lastChoices);
}

async function stop() {
  dropConversation();
  problem.clear();
  await parley.close();
}

// Typed words begin a conversation too: its answer is heard, the microphone stays closed.
async function say(text) {
  if (!isRunning()) await start({ ...lastChoices, microphone: false });
  else await opening?.catch(() => {}); // whoever opened it tells of the failure
  if (!isRunning() || parley.state === 'reconnecting') return false;
  conversation.followNewest();
  parley.say(text);
  return true;
}

function setMuted(isMuted) {
  if (isMuted) parley.mute();
  else parley.unmute();
  showControls();
}

// A voice that is recorded for a copy, or played to its owner, is not said to the conversation.
function keepFromConversation(isSounding) {
  if (!isRunning()) return;
  if (isSounding && !parley.isMuted) {
    mutedForVoice = parley;
    setMuted(true);
  } else if (!isSounding && mutedForVoice === parley) {
    mutedForVoice = null;
    setMuted(false);
  }
}

async function useMicrophone(choice) {
  const mine = parley;
  try {
    await mine.useMicrophone(choice);
  } catch (error) {
    if (parley === mine) problem.show({ code: error.code, message: error.message, isFatal: false });
  }
  showControls();
}

function listen(mine) {
  const on = (type, act) =>
    mine.addEventListener(type, ({ detail }) => {
      if (parley === mine) act(detail);
    });
  on('state', ({ state, before }) => {
    if (state === 'connecting') meters.start();
    if (state === 'closed' || state === 'idle') meters.stop();
    if (before === 'reconnecting') showMicrophone();
    showControls();
  });
  on('item', ({ item }) => {
    conversation.show(item, mine.items);
    announcer.note(item);
  });
  on('call', ({ item }) => {
    conversation.show(item, mine.items);
    announcer.note(item);
  });
  on('itemremoved', ({ id }) => conversation.remove(id));
  on('heard', ({ item }) => conversation.light(item));
  on('turn', ({ turn }) => latency.show(turn));
  on('microphone', ({ microphone }) => {
    if (microphone && problem.code?.startsWith('microphone_')) problem.clear();
    showMicrophone();
  });
  on('problem', (found) => problem.show(found));
  on('server', ({ event }) => noteGreeting(event));
  on('reconnecting', ({ inMs }) => controls.showNews(describeWait(inMs)));
  on('closed', ({ message }) => {
    dropConversation();
    if (message && problem.code === null) problem.show({ code: 'session_over', message, isFatal: true });
    controls.showNews('');
    showControls();
  });
}

function describeWait(inMs) {
  const seconds = Math.round(inMs / 1000);
  const when = seconds < 1 ? '' : ` in ${seconds} s`;
  return `The connection was lost. Trying again${when}.`;
}

function showMicrophone() {
  controls.showMicrophone(parley.microphone, parley.codec);
  showControls();
}

function showControls() {
  const { state, isMuted, microphone, items } = parley;
  const hasMicrophone = microphone !== null;
  stateView.show({ state, isMuted, hasMicrophone, hasItems: items.length > 0 });
  controls.show({ state, isRunning: isRunning(), isMuted, hasMicrophone, isHeld: pushToTalk.isHeld });
}

function noteGreeting(event) {
  if (event.type !== 'session.created') return;
  if (parley.state === 'reconnecting' || lastChoices.resume) {
    announcer.isRepeating = true;
    setTimeout(() => (announcer.isRepeating = false), REPEAT_MS);
  }
  resumeWithinMs = event.parley?.resume?.within_ms ?? 0;
  keepForReload();
}

function keepForReload() {
  const part = { hasMicrophone: parley.microphone !== null, isMuted: parley.isMuted };
  keepConversation(parley.resumeToken, resumeWithinMs, part);
}

// The time that a conversation is parked begins with the loss of the line: now, if the page is left.
addEventListener('pagehide', () => {
  if (isRunning()) keepForReload();
});

// Escape silences the answer, from any field and button too, unless it closes something.
addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing || closePanel()) return;
  if (isRunning() && opening === null) parley.interrupt();
});

function tellLinkFault() {
  problem.show({ code: 'link_key', message: store.linkFault, isFatal: false });
}
store.addEventListener('linkfault', tellLinkFault);
if (store.linkFault !== null) tellLinkFault();

// A reload goes on with its conversation by itself, if the browser lets it listen or at least sound.
const kept = keptConversation();
if (kept) {
  const { token: resume, hasMicrophone, isMuted } = kept;
  const mayListen = hasMicrophone && (await isMicrophoneGranted());
  lastChoices = mayListen ? { resume, isMuted } : { resume, isMuted, microphone: false };
  if (mayListen || maySoundUnasked()) {
    await start(lastChoices);
  } else {
    const message = 'Your conversation is kept for about a minute: press Start talking to go on with it, or just hear the rest.';
    problem.show({ code: 'sound_blocked', message, isFatal: false });
  }
}
