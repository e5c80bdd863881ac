// The browser's sound: one context, a microphone that gives PCM16 and a loudspeaker that takes it.

const LATENCY_HINT = 'interactive';

export class MicrophoneError extends Error {}

export class Sound {
  // onChunk(Int16Array, peak), onPlaying(item or null), onFlushed(item or null, playedMs), onLost()
  static async open(handlers) {
    if (!navigator.mediaDevices?.getUserMedia) {
      throw new MicrophoneError('This page may use the microphone only over https or on localhost.');
    }
    const stream = await askForMicrophone();
    const context = new AudioContext({ latencyHint: LATENCY_HINT });
    try {
      await context.audioWorklet.addModule('/capture-worklet.js');
      await context.audioWorklet.addModule('/playback-worklet.js');
      await context.resume();
      return new Sound(context, stream, handlers);
    } catch (error) {
      stream.getTracks().forEach((track) => track.stop());
      await context.close();
      throw error;
    }
  }

  constructor(context, stream, { onChunk, onPlaying, onFlushed, onLost }) {
    this.context = context;
    this.stream = stream;
    this.source = context.createMediaStreamSource(stream);
    this.capture = new AudioWorkletNode(context, 'capture', { numberOfOutputs: 0 });
    this.playback = new AudioWorkletNode(context, 'playback', { numberOfInputs: 0 });
    this.source.connect(this.capture);
    this.playback.connect(context.destination);
    this.capture.port.onmessage = ({ data }) => onChunk(data.pcm, data.peak);
    this.playback.port.onmessage = ({ data }) => {
      if ('flushed' in data) onFlushed(data.flushed, data.playedMs);
      else onPlaying(data.playing);
    };
    stream.getAudioTracks()[0].onended = onLost;
  }

  play(item, pcm) {
    this.playback.port.postMessage({ item, pcm }, [pcm.buffer]);
  }

  flush() {
    this.playback.port.postMessage({ flush: true });
  }

  async close() {
    this.stream.getTracks().forEach((track) => {
      track.onended = null;
      track.stop();
    });
    if (this.context.state !== 'closed') await this.context.close();
  }
}

async function askForMicrophone() {
  const audio = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };
  try {
    return await navigator.mediaDevices.getUserMedia({ audio });
  } catch (error) {
    throw new MicrophoneError(explain(error));
  }
}

function explain(error) {
  switch (error.name) {
    case 'NotAllowedError':
      return 'The microphone is blocked. Allow it in the address bar of the browser, then try again.';
    case 'NotFoundError':
      return 'No microphone was found. Plug one in, then try again.';
    case 'NotReadableError':
      return 'The microphone is in use by another program. Close that one, then try again.';
    default:
      return `The microphone cannot be used: ${error.message}`;
  }
}
