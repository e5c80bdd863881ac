"""From the last voiced sample of a recording to the first audible sample that a listener hears.

Recordings are said in real time, each in a conversation of its own. A turn taken while the
recording still goes on is a cut-in: it is counted, and its latency is not.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import numpy as np

from benchmarks import options
from benchmarks.exchange import Exchange, converse
from benchmarks.hearing import hear_all
from benchmarks.recordings import Recording, load
from benchmarks.report import print_table, spread, write_json
from benchmarks.server import serving
from benchmarks.words import word_error_rate, word_errors
from realtime.commands.turns import Step, Turn

# What nobody says to an agent in one go, or has no words to answer.
UNSUITABLE = frozenset(
    {
        "no-speech",
        "noise-only",
        "backchannel",
        "multi-speaker",
        "two-utterances",
        "babble",
        "noisy",
        "incomplete",
        "language-de",
        "language-pt",
        "mid-pause",
        "long-pause",
        "overlap",
        "fragment",
        "echo",
        "background-speech",
    }
)
LOUDEST_SILENCE = 327  # 1 % of full scale: a reply below it is no reply


def main() -> None:
    chosen = _arguments()
    recordings = load(chosen.folder, unwanted=UNSUITABLE, limit=chosen.count)
    with serving(chosen.url, chosen.config) as server:
        exchanges = [asyncio.run(_say(server.url, r)) for r in recordings]
        memory_mib = server.memory_mib()
    rows = [_row(r, e) for r, e in zip(recordings, exchanges, strict=True)]
    spoken = _check_speech(exchanges) if chosen.check else None
    _print(rows, spoken, memory_mib)
    write_json(
        "voice_to_voice",
        {
            "latency_ms": spread(_latencies(rows)),
            "turns": rows,
            "cut_ins": sum(row["cut_in"] for row in rows),
            "incomplete": [row["recording"] for row in rows if not row["answered"]],
            "reply_wer": spoken,
            "memory_mib": memory_mib,
        },
        chosen.json,
    )


def _arguments() -> argparse.Namespace:
    parser = options.parser(__doc__)
    options.add_recordings(parser, count=20)
    options.add_server(parser)
    parser.add_argument(
        "--no-check", dest="check", action="store_false", help="do not transcribe the replies"
    )
    return parser.parse_args()


async def _say(url: str, recording: Recording) -> Exchange:
    return await converse(url, recording.pcm, recording.first_voiced, recording.last_voiced)


def _row(recording: Recording, exchange: Exchange) -> dict[str, Any]:
    answered = [turn for turn in exchange.turns if turn.reply_item is not None]
    last = answered[-1] if answered else Turn()
    sound_ms = last.steps_ms.get(Step.FIRST_SOUND)
    begun_early = any(
        turn.steps_ms.get(Step.CREATED, exchange.speech_end_ms) < exchange.speech_end_ms
        for turn in exchange.turns
    )
    heard = " ".join(turn.heard for turn in exchange.turns if turn.heard)
    errors, words = word_errors(recording.text, heard)
    steps = {str(step): at_ms - exchange.speech_end_ms for step, at_ms in last.steps_ms.items()}
    audio = exchange.reply_audio(last.reply_item) if last.reply_item else np.zeros(0, np.int16)
    is_loud = audio.size > 0 and int(np.abs(audio.astype(np.int32)).max()) > LOUDEST_SILENCE
    return {
        "recording": recording.name,
        "text": recording.text,
        "heard": heard,
        "word_errors": errors,
        "words": words,
        "said": last.said.strip(),
        "answered": last.status == "completed" and is_loud,
        "cut_in": begun_early,
        "latency_ms": None if sound_ms is None else sound_ms - exchange.speech_end_ms,
        "steps_ms": steps,
        "gaps_ms": exchange.playback.gaps_ms(last.reply_item) if last.reply_item else [],
        "stray": exchange.stray,
        "errors": exchange.errors,
    }


def _latencies(rows: list[dict[str, Any]]) -> list[float]:
    return [r["latency_ms"] for r in rows if r["latency_ms"] is not None and not r["cut_in"]]


def _check_speech(exchanges: list[Exchange]) -> dict[str, Any]:
    """Whether the voice said what the transcript says: what a recogniser hears in the replies."""
    replies = [
        (turn.said, exchange.reply_audio(turn.reply_item))
        for exchange in exchanges
        for turn in exchange.turns
        if turn.reply_item is not None and turn.status == "completed"
    ]
    heard = hear_all([audio for _, audio in replies])
    pairs = [(said, text) for (said, _), text in zip(replies, heard, strict=True)]
    return {
        "wer": word_error_rate(pairs),
        "worst": sorted(((word_error_rate([pair]), *pair) for pair in pairs), reverse=True)[:3],
        "replies": len(pairs),
    }


def _print(
    rows: list[dict[str, Any]], spoken: dict[str, Any] | None, memory_mib: float | None
) -> None:
    columns = ("recording", "latency", "stopped", "created", "first audio", "cut in", "answered")
    print_table(
        columns,
        [
            (
                row["recording"],
                row["latency_ms"],
                row["steps_ms"].get("speech_stopped"),
                row["steps_ms"].get("created"),
                row["steps_ms"].get("first audio"),
                "yes" if row["cut_in"] else "",
                "yes" if row["answered"] else "NO",
            )
            for row in rows
        ],
    )
    latencies = _latencies(rows)
    if latencies:
        figures = spread(latencies)
        print(
            f"\nvoice to voice: median {figures['median']:.0f} ms, p95 {figures['p95']:.0f}, "
            f"from {figures['min']:.0f} to {figures['max']:.0f} (n {len(latencies)})"
        )
    print(f"cut-ins: {sum(row['cut_in'] for row in rows)} of {len(rows)}")
    print(f"answered: {sum(row['answered'] for row in rows)} of {len(rows)}")
    words = sum(row["words"] for row in rows)
    if words:
        errors = sum(row["word_errors"] for row in rows if row["words"])
        print(f"word error rate of what was heard: {errors / words:.3f}")
    if spoken is not None:
        print(f"word error rate of the replies' speech: {spoken['wer']:.3f}")
    stray = [event for row in rows for event in row["stray"]]
    print(f"events of a response after its done: {len(stray)}")
    if memory_mib is not None:
        print(f"memory of the server's processes: {memory_mib:.0f} MiB")


if __name__ == "__main__":
    main()
