"""From the last voiced sample of a recording to the first audible sample that a listener hears.

Recordings are said in real time, each in a conversation of its own. A turn taken while the
recording still goes on is a cut-in: it is counted, and its latency is not.

Started servers answer with and without drafts, in turn, over the same recordings; their records
say where each millisecond went.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import options, plots
from benchmarks.exchange import Exchange, converse
from benchmarks.hearing import hear_all
from benchmarks.recordings import Recording, load
from benchmarks.records import read_all
from benchmarks.report import print_table, spread, write_json
from benchmarks.server import Server, serving
from benchmarks.stations import part_figures, shown_parts, time_spent
from benchmarks.words import word_error_rate, word_errors
from realtime.commands.turns import Step, Turn
from realtime.session.ledger import TurnTimeline

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
SETTINGS = ("on", "off")  # of drafts
LOUDEST_SILENCE = 327  # 1 % of full scale: a reply below it is no reply


BLOCK = 5  # recordings to one setting before the other's turn: the machine's mood hits both


def main() -> None:
    chosen = _arguments()
    recordings = load(chosen.folder, unwanted=UNSUITABLE, limit=chosen.count)
    with tempfile.TemporaryDirectory(prefix="parley-records-") as folder, ExitStack() as stack:
        runs = _start(chosen, Path(folder), stack)
        for start in range(0, len(recordings), BLOCK):
            for run in runs:
                for recording in recordings[start : start + BLOCK]:
                    run.exchanges.append(asyncio.run(_say(run.server.url, recording)))
        for run in runs:
            run.memory_mib = run.server.memory_mib()
        stack.close()
        for run in runs:
            records = read_all(run.folder) if run.folder is not None else []
            timelines = {k: v for record in records for k, v in record.timelines.items()}
            run.rows = [
                _row(recording, exchange, timelines)
                for recording, exchange in zip(recordings, run.exchanges, strict=True)
            ]
    for run in runs:
        spoken = _check_speech(run.exchanges) if chosen.check else None
        run.result = _summary(run, spoken)
        _print(run, spoken)
    _draw(runs, chosen.json.parent if chosen.json else None)
    first, *others = runs
    write_json(
        "voice_to_voice",
        {**first.result, "settings": {run.name: run.result for run in (first, *others)}},
        chosen.json,
    )


@dataclass(slots=True)
class Run:
    """One server and what it was asked. folder: of its records."""

    name: str
    server: Server
    folder: Path | None
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    memory_mib: float | None = None
    result: dict[str, Any] = field(default_factory=dict[str, Any])


def _start(chosen: argparse.Namespace, folder: Path, stack: ExitStack) -> list[Run]:
    """A server per setting, all loaded at once; only one is spoken to at a time."""
    if chosen.url is not None:
        return [Run("as it is", stack.enter_context(serving(chosen.url, None)), None)]
    runs: list[Run] = []
    for name in SETTINGS if chosen.drafts == "both" else (chosen.drafts,):
        records = folder / name
        settings: dict[str, dict[str, Any]] = {
            "session": {"drafts": name == "on"},
            "server": {"record_dir": str(records)},
        }
        server = stack.enter_context(serving(None, chosen.config, settings))
        runs.append(Run(name, server, records))
    return runs


def _summary(run: Run, spoken: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "drafts": run.name,
        "latency_ms": spread(_latencies(run.rows)),
        "parts_ms": part_figures([row["parts_ms"] for row in _uncut(run.rows) if row["parts_ms"]]),
        "turns": run.rows,
        "cut_ins": sum(row["cut_in"] for row in run.rows),
        "incomplete": [row["recording"] for row in run.rows if not row["answered"]],
        "reply_wer": spoken,
        "memory_mib": run.memory_mib,
    }


def _arguments() -> argparse.Namespace:
    parser = options.parser(__doc__)
    options.add_recordings(parser, count=20)
    options.add_server(parser)
    parser.add_argument(
        "--drafts",
        choices=(*SETTINGS, "both"),
        default="both",
        help="whether the started server works ahead of the end of a turn",
    )
    parser.add_argument(
        "--no-check", dest="check", action="store_false", help="do not transcribe the replies"
    )
    return parser.parse_args()


async def _say(url: str, recording: Recording) -> Exchange:
    return await converse(url, recording.pcm, recording.first_voiced, recording.last_voiced)


def _row(
    recording: Recording, exchange: Exchange, timelines: Mapping[str, TurnTimeline]
) -> dict[str, Any]:
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
        "parts_ms": time_spent(last, exchange.speech_end_ms, timelines.get(last.response_id or "")),
        "gaps_ms": exchange.playback.gaps_ms(last.reply_item) if last.reply_item else [],
        "stray": exchange.stray,
        "errors": exchange.errors,
    }


def _uncut(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose latency counts."""
    return [row for row in rows if row["latency_ms"] is not None and not row["cut_in"]]


def _latencies(rows: list[dict[str, Any]]) -> list[float]:
    return [row["latency_ms"] for row in _uncut(rows)]


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


def _draw(runs: list[Run], folder: Path | None) -> None:
    """Where the time went, per setting; and how the latencies lie."""
    parts = {f"drafts {run.name}": shown_parts(run.result["parts_ms"]) for run in runs}
    if all(parts.values()):
        title = "From the end of speech to the first sound, mean"
        plots.write("voice_to_voice_parts", plots.stacked_bars(title, "ms", parts), folder)
    latencies = {f"drafts {run.name}": _latencies(run.rows) for run in runs}
    if all(latencies.values()):
        title = "From the end of speech to the first sound"
        plots.write("voice_to_voice", plots.distribution(title, "ms", latencies), folder)


def _print(run: Run, spoken: dict[str, Any] | None) -> None:
    rows = run.rows
    print(f"\ndrafts: {run.name}")
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
    if run.memory_mib is not None:
        print(f"memory of the server's processes: {run.memory_mib:.0f} MiB")
    if run.result["parts_ms"]:
        print()
        print_table(
            ("waiting for", "median", "mean"),
            [
                (name, round(part["median"]), round(part["mean"]))
                for name, part in run.result["parts_ms"].items()
            ],
        )


if __name__ == "__main__":
    main()
