"""Six fixed questions, spoken by the embedded voice: does the answer name the key word?"""

from __future__ import annotations

import asyncio

import numpy as np
import soxr

from benchmarks import options
from benchmarks.exchange import converse
from benchmarks.report import print_table, write_json
from benchmarks.server import serving
from pipelines.stages.tts_piper import PiperSpeaker
from pipelines.types import SpeakRequest
from realtime.commands.wire_client import WIRE_RATE_HZ, Pcm

QUESTIONS: dict[str, tuple[str, ...]] = {
    "What is the capital of France?": ("paris",),
    "What is the opposite of hot?": ("cold",),
    "What is seven times eight?": ("56", "fifty-six", "fifty six"),
    "What color is the sky on a clear day?": ("blue",),
    "How many days are there in a week?": ("seven", "7"),
    "Which planet do we live on?": ("earth",),
}


def main() -> None:
    parser = options.parser(__doc__)
    options.add_server(parser)
    chosen = parser.parse_args()
    spoken = asyncio.run(_speak(list(QUESTIONS)))
    answers: list[tuple[str, str, str, bool]] = []
    with serving(chosen.url, chosen.config) as server:
        for (question, keys), pcm in zip(QUESTIONS.items(), spoken, strict=True):
            exchange = asyncio.run(converse(server.url, pcm))
            heard = " ".join(turn.heard or "" for turn in exchange.turns).strip()
            said = " ".join(turn.said.strip() for turn in exchange.turns).strip()
            is_right = any(key in said.lower() for key in keys)
            answers.append((question, heard, said, is_right))
    print_table(
        ("question", "heard", "answer", "right"),
        [(q, h, s, "yes" if ok else "NO") for q, h, s, ok in answers],
    )
    right = sum(ok for *_, ok in answers)
    print(f"\nanswered with the key word: {right} of {len(answers)}")
    rows = [{"question": q, "heard": h, "answer": s, "right": ok} for q, h, s, ok in answers]
    write_json("questions", {"right": right, "answers": rows}, chosen.json)


async def _speak(texts: list[str]) -> list[Pcm]:
    """The texts as int16 [n] at WIRE_RATE_HZ."""
    speaker = PiperSpeaker()
    await speaker.start(lambda _: None)
    clips: list[Pcm] = []
    try:
        for place, text in enumerate(texts):
            stream = speaker.open(SpeakRequest(f"question-{place}", "joe"))
            await stream.push(text)
            await stream.finish()
            pieces = [(piece.samples, piece.rate_hz) async for piece in stream]
            samples = np.concatenate([piece for piece, _ in pieces])
            mono = soxr.resample(samples, pieces[0][1], WIRE_RATE_HZ)
            clips.append((np.clip(mono, -1, 1) * 32_767).astype(np.int16))
    finally:
        await speaker.close()
    return clips


if __name__ == "__main__":
    main()
