"""Whether the history of an interrupted reply holds what was heard of it, to the word.

A recording interrupts a reply at a random moment. What the listener heard is transcribed by the
embedded recogniser and aligned with the whole reply: the place of the last matched word is where
the reply was cut, however the recogniser spells the word that was cut. Where it heard more words
that match nothing, nobody can say, and the case is set aside. Against it stand the item's
text after the client's own truncation, and what the next prompt holds; half of the clients do not
truncate, and for them the server's own reckoning counts alone.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import options
from benchmarks.hearing import hear_all
from benchmarks.interrupting import Overlap, talk_over
from benchmarks.listening import Outcome
from benchmarks.recordings import Recording, load
from benchmarks.records import SessionRecord, read_all
from benchmarks.report import print_table, spread, write_json
from benchmarks.server import serving
from benchmarks.voice_to_voice import UNSUITABLE
from benchmarks.words import last_matched, words_of

SEED = 20_250_104  # every run interrupts at the same moments
MOMENT_MS = (600, 5000)  # of the agent's speech
CLOSE_WORDS = 1  # so far apart is as good as the same: a word that is cut in half is either


@dataclass(frozen=True, slots=True)
class Case:
    recording: Recording
    after_ms: float
    truncates: bool
    overlap: Overlap


def main() -> None:
    chosen = _arguments()
    recordings = load(chosen.folder, unwanted=UNSUITABLE)
    with tempfile.TemporaryDirectory(prefix="parley-records-") as folder:
        settings = {"server": {"record_dir": folder}}
        with serving(chosen.url, chosen.config, settings) as server:
            cases = _interrupt(server.url, recordings, chosen.count)
        records = read_all(Path(folder)) if chosen.url is None else []
    measured = [c for c in cases if c.overlap.reaction.outcome is Outcome.YIELDED]
    if not measured:
        sys.exit("no reply was interrupted")
    heard = hear_all([c.overlap.played for c in measured if c.overlap.played is not None])
    everything = [_row(case, text, records) for case, text in zip(measured, heard, strict=True)]
    rows = [row for row in everything if row["unmatched"] <= CLOSE_WORDS]
    figures = {
        "item, client truncates": _score([r["item_off"] for r in rows if r["truncates"]]),
        "prompt, client truncates": _score([r["prompt_off"] for r in rows if r["truncates"]]),
        "prompt, client does not": _score([r["prompt_off"] for r in rows if not r["truncates"]]),
    }
    _print(everything, figures)
    print(f"interrupted: {len(measured)} of {len(cases)}")
    print(f"set aside, for the recogniser heard other words: {len(everything) - len(rows)}")
    write_json("history", {"figures": figures, "cases": everything}, chosen.json)


def _arguments() -> argparse.Namespace:
    parser = options.parser(__doc__)
    parser.add_argument("folder", type=Path, help="recordings, with manifest.jsonl if there is one")
    parser.add_argument("--count", type=int, default=40, help="how many interruptions")
    options.add_server(parser)
    return parser.parse_args()


def _interrupt(url: str, recordings: list[Recording], count: int) -> list[Case]:
    """Clients take turns in telling the server what was heard."""
    chance = random.Random(SEED)
    cases: list[Case] = []
    for place in range(count):
        recording, after_ms = chance.choice(recordings), chance.uniform(*MOMENT_MS)
        truncates = place % 2 == 0
        voice = recording.pcm[recording.first_voiced :]
        overlap = talk_over(url, voice, after_ms, truncates=truncates, retrieves=True)
        cases.append(Case(recording, after_ms, truncates, overlap))
    return cases


def _row(case: Case, heard: str, records: list[SessionRecord]) -> dict[str, Any]:
    overlap = case.overlap
    matched = last_matched(overlap.said, heard)
    spoken = matched.words
    prompt = _prompt_text(overlap, records)
    item = overlap.retrieved if case.truncates else None
    return {
        "recording": case.recording.name,
        "after_ms": case.after_ms,
        "truncates": case.truncates,
        "said": overlap.said.strip(),
        "heard": heard,
        "item": item,
        "prompt": prompt,
        "heard_words": spoken,
        "unmatched": matched.unmatched,
        # Positive: the history holds more than was heard.
        "item_off": None if item is None else len(words_of(item)) - spoken,
        "prompt_off": None if prompt is None else len(words_of(prompt)) - spoken,
    }


def _prompt_text(overlap: Overlap, records: list[SessionRecord]) -> str | None:
    """What the last prompt of the session holds of the interrupted reply.

    None where the session wrote no further reply, or is not recorded.
    """
    for record in records:
        if overlap.response_id not in record.timelines or len(record.prompts) < 2:
            continue
        asked = [message for message in record.prompts[-1] if message.role == "user"]
        if len(asked) < 2 and not any(m.role == "assistant" for m in record.prompts[-1]):
            return ""  # nothing of the reply was heard: it is left out
        return next((m.text for m in record.prompts[-1] if m.role == "assistant"), "")
    return None


def _score(off: list[int | None]) -> dict[str, Any]:
    """Spread of the words that a history is off by, and the share that is close."""
    known = [value for value in off if value is not None]
    if not known:
        return {}
    close = sum(abs(value) <= CLOSE_WORDS for value in known)
    return {
        "n": len(known),
        "exact": sum(value == 0 for value in known),
        "close": close,
        "share_close": close / len(known),
        "off": spread(known),
    }


def _print(rows: list[dict[str, Any]], figures: dict[str, dict[str, Any]]) -> None:
    print_table(
        ("recording", "after", "truncates", "heard words", "unmatched", "item off", "prompt off"),
        [
            (
                row["recording"],
                round(row["after_ms"]),
                "yes" if row["truncates"] else "",
                row["heard_words"],
                row["unmatched"],
                row["item_off"],
                row["prompt_off"],
            )
            for row in rows
        ],
    )
    print()
    for name, score in figures.items():
        if score:
            print(
                f"{name}: within one word {score['close']} of {score['n']}, "
                f"exact {score['exact']}, off by {score['off']['min']:+.0f} to "
                f"{score['off']['max']:+.0f} words (median {score['off']['median']:+.0f})"
            )


if __name__ == "__main__":
    main()
