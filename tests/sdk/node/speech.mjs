// What the official SDK makes of a server's speech and transcriptions, as lines of JSON.
import { createReadStream } from "node:fs";
import OpenAI from "openai";

const [baseURL, apiKey, recording] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const tell = (name, value) => console.log(JSON.stringify([name, value]));
const spoken = { model: "tts-1", voice: "alloy", input: "one two three ".repeat(20) };

const whole = await client.audio.speech.create({ ...spoken, response_format: "wav" });
tell("wav", Buffer.from(await whole.arrayBuffer()).toString("base64"));

const streamed = await client.audio.speech.create({ ...spoken, response_format: "pcm" });
let pieces = 0;
let bytes = 0;
for await (const piece of streamed.body) {
  pieces += 1;
  bytes += piece.length;
}
tell("pcm", { pieces, bytes });

try {
  await client.audio.speech.create({ ...spoken, speed: 9 });
} catch (error) {
  tell("refused", { status: error.status, code: error.code, param: error.param, name: error.name });
}

const heard = () => createReadStream(recording);
const text = await client.audio.transcriptions.create({ file: heard(), model: "whisper-1" });
tell("text", text.text);
const events = await client.audio.transcriptions.create({
  file: heard(),
  model: "gpt-4o-transcribe",
  stream: true,
});
const types = [];
for await (const event of events) types.push([event.type, event.delta ?? event.text]);
tell("events", types);
