// Within the page: what the tests of its sound need around it. Samples go out as arrays.

globalThis.lab = {
  rateHz: 24000,
  frameSamples: 480,
  contexts: [],
  streams: [],

  wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),

  async until(isTrue, limitMs = 15000) {
    for (const startMs = performance.now(); !isTrue(); ) {
      if (performance.now() - startMs > limitMs) throw new Error(`never: ${isTrue}`);
      await lab.wait(5);
    }
  },

  // A Sound whose calls are noted: {sound, packets, recorded, reports, starts, changes, problems}.
  async open(options) {
    const { Sound } = await import('/client/sound/context.js');
    const noted = {
      packets: [], recorded: [], reports: [], starts: [], changes: [], losses: [], problems: [],
    };
    noted.sound = await Sound.open({
      onPacket: (packet) => noted.packets.push(packet),
      onRecorded: (channel, samples, atSample) =>
        noted.recorded.push({ channel, atSample, samples: Array.from(samples) }),
      onProgress: (report) => noted.reports.push(report),
      onStarted: (start) => noted.starts.push(start),
      onMicrophoneChanged: (microphone) => noted.changes.push(microphone),
      onMicrophoneLost: ({ code }) => noted.losses.push(code),
      onProblem: ({ code }) => noted.problems.push(code),
      ...options,
    });
    return noted;
  },

  // The code of the error that opening gives.
  async refusal(options) {
    try {
      const { sound } = await lab.open(options);
      await sound.close();
      return null;
    } catch (error) {
      return error.code ?? String(error);
    }
  },

  // What the server would send: a tone, in packets of 20 ms.
  async tone(codecName, count, toneHz = 440) {
    const { openCodec } = await import('/client/sound/codec.js');
    const packets = [];
    const codec = await openCodec(codecName);
    const encoder = codec.newEncoder((packet) => packets.push(packet));
    for (let n = 0; n < count; n += 1) {
      const at = n * lab.frameSamples;
      const sample = (_, k) => 0.5 * Math.sin((2 * Math.PI * toneHz * (at + k)) / lab.rateHz);
      encoder.encode(Float32Array.from({ length: lab.frameSamples }, sample));
    }
    await lab.until(() => packets.length >= count);
    return packets.slice(0, count);
  },

  // {rateHz, samples} of packets of one item.
  async decode(codecName, packets) {
    const { openCodec } = await import('/client/sound/codec.js');
    const samples = [];
    let rateHz = null;
    await (async () => {
      const codec = await openCodec(codecName);
      await new Promise((resolve) => {
        const decoder = codec.newDecoder({
          onSamples: (_id, some, someHz) => {
            rateHz = someHz;
            samples.push(...some);
          },
          onFinished: resolve,
        });
        for (const packet of packets) decoder.decode('item', packet);
        decoder.finish('item');
      });
    })();
    return { rateHz, samples };
  },

  isOver: ({ reports }, id) =>
    reports.some(({ itemId, isPlaying, bufferedMs }) => itemId === id && !isPlaying && !bufferedMs),
};

const { mediaDevices } = navigator;
const getUserMedia = mediaDevices.getUserMedia.bind(mediaDevices);
lab.changeConstraints = (constraints) => constraints;
mediaDevices.getUserMedia = async (constraints) => {
  const stream = await getUserMedia(lab.changeConstraints(constraints));
  lab.streams.push(stream);
  return stream;
};

const Context = globalThis.AudioContext;
globalThis.AudioContext = class extends Context {
  constructor(options) {
    super(options);
    lab.contexts.push(this);
  }
};
