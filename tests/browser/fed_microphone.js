// Stands in for the microphone: hears what the test says, when it says it. Runs before the page's
// own scripts. The stream is a real one: only its source is the test's.
(() => {
  if (!navigator.mediaDevices) return; // the empty page before the first: no address, no devices
  let context = null;
  let line = null;

  // Like a good device, it says that it does what it is asked for.
  navigator.mediaDevices.getUserMedia = async ({ audio }) => {
    if (!context) open();
    const stream = line.stream.clone();
    const [track] = stream.getAudioTracks();
    const told = { ...track.getSettings() };
    for (const name of ['echoCancellation', 'noiseSuppression', 'autoGainControl']) {
      told[name] = Boolean(audio[name]?.ideal ?? audio[name]);
    }
    track.getSettings = () => told;
    return stream;
  };

  // After a reload the browser wants a press before any sound is made, which is the page's matter:
  // until then the line is silent, and complains of nothing.
  function open() {
    context = new AudioContext();
    line = context.createMediaStreamDestination();
    addEventListener('click', () => context.resume(), { capture: true });
  }

  globalThis.testMicrophone = {
    // base64 of int16 little-endian at rateHz; resolves when the last sample has been said.
    say(base64, rateHz) {
      if (!context) throw new Error('nobody listens');
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      const pcm = new Int16Array(bytes.buffer);
      const buffer = context.createBuffer(1, pcm.length, rateHz);
      buffer.copyToChannel(Float32Array.from(pcm, (sample) => sample / 32768), 0);
      const source = new AudioBufferSourceNode(context, { buffer });
      source.connect(line);
      source.start();
      return new Promise((resolve) => {
        source.onended = () => resolve(true);
      });
    },
  };
})();
