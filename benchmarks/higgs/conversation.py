"""Spoken turns with a server whose language model and voice share a GPU.

`python -m benchmarks.higgs.conversation --config configs/higgs.yaml` starts that server and talks
to it through /v1/realtime: first turns that are heard out, each in a conversation of its own, with
the station that each millisecond went to; then replies that are spoken over. At the end it shows
what every stage's processes hold of the card, beside the share that was declared for it.

With `--synthetic FOLDER` models of random weights are made there and stand in for the real ones.
Without `--recording` a made-up sound is said, which only scripted ears take for speech.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import options
from benchmarks.exchange import LEAD_IN_MS, Talker, introduce
from benchmarks.higgs.cards import Held, held_by_stages, used_of_cards
from benchmarks.higgs.stand_ins import write_stand_ins
from benchmarks.higgs.timeline import Timeline
from benchmarks.interrupting import Overlap, talk_over
from benchmarks.report import print_table, spread, write_json
from benchmarks.server import Server, serving
from realtime.commands.talk import read_recording
from realtime.commands.turns import last_voiced_sample
from realtime.commands.wire_client import WIRE_RATE_HZ, Pcm, open_client
from realtime.settings_file import load_settings

CONFIG = Path(__file__).resolve().parents[2] / "configs" / "higgs.yaml"
REPLY_TOKENS = 30  # random weights end no reply of their own accord
SAID_MS = 1600  # of the made-up sound
PITCH_HZ = 120
SYLLABLES_PER_S = 4
PEAK = 8000  # of 32767: about as loud as a voice nearby
SMALLEST_STOP = 3  # interruptions fewer than which have no spread worth showing


def main() -> None:
    chosen = _arguments()
    config: Path = chosen.config
    if chosen.synthetic is not None:
        config = write_stand_ins(
            chosen.synthetic, config, is_tiny=chosen.tiny, has_ears=chosen.recording is not None
        )
    said = made_up_sound() if chosen.recording is None else _trimmed(chosen.recording)
    before_mib = used_of_cards()
    begun_s = time.monotonic()
    with serving(None, str(config)) as server:
        ready_s = time.monotonic() - begun_s
        print(f"the server is ready after {ready_s:.0f} s", flush=True)
        timelines = [asyncio.run(_turn(server.url, said, chosen.tokens))]  # it warms up
        timelines += [
            asyncio.run(_turn(server.url, said, chosen.tokens)) for _ in range(chosen.turns)
        ]
        for number, timeline in enumerate(timelines):
            _show(f"turn {number}" if number else "first turn", timeline)
        overlaps = [talk_over(server.url, said) for _ in range(chosen.interruptions)]
        _show_overlaps(overlaps)
        held = _held(config, server)
        _show_memory(held, before_mib, used_of_cards())
        load = server.health().get("load", {})
    write_json(
        "conversation",
        {
            "ready_s": ready_s,
            "turns": [timeline.figures() for timeline in timelines],
            "voice_to_voice_ms": spread(_first_sounds(timelines[1:])),
            "interruptions": [_overlap_figures(overlap) for overlap in overlaps],
            "memory": [asdict(entry) for entry in held],
            "card_used_before_mib": before_mib,
            "load": load,
        },
        chosen.json,
    )


def made_up_sound() -> Pcm:
    """int16 [n] at WIRE_RATE_HZ: a hum that swells as syllables do."""
    at_s = np.arange(WIRE_RATE_HZ * SAID_MS // 1000) / WIRE_RATE_HZ
    hum = sum(np.sin(2 * np.pi * PITCH_HZ * order * at_s) / order for order in range(1, 9))
    swell = 0.6 + 0.4 * np.sin(2 * np.pi * SYLLABLES_PER_S * at_s)
    sound = np.asarray(hum) * swell
    return (sound / np.abs(sound).max() * PEAK).astype(np.int16)


def _trimmed(path: Path) -> Pcm:
    """From the first loud sample to the last voiced one, whose end the times are counted from."""
    pcm = read_recording(path)
    end = last_voiced_sample(pcm, len(pcm)) or len(pcm)
    loud = np.flatnonzero(np.abs(pcm.astype(np.int32)) > PEAK // 20)
    return pcm[int(loud[0]) if loud.size else 0 : end]


async def _turn(url: str, said: Pcm, tokens: int) -> Timeline:
    """Say it, and hear the reply out."""
    async with open_client(url) as client:
        timeline = Timeline()
        talker = Talker(client, witness=timeline.note)
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(talker.listen())
            await introduce(client, max_output_tokens=tokens)
            await talker.be_silent(LEAD_IN_MS)
            begin = await talker.say(said)
            timeline.speech_end_ms = client.spoken_at_ms(begin + len(said))
            await talker.hear_out()
            listening.cancel()
        timeline.heard(talker.playback, talker.log.errors)
        return timeline


def _show(title: str, timeline: Timeline) -> None:
    print(f"\n{title}: ms since the end of speech, as the server and as the client sees it")
    print_table(("station", "server", "client"), timeline.rows())
    for line in timeline.notes():
        print(line)


def _first_sounds(timelines: Sequence[Timeline]) -> list[float]:
    return [t.first_sound_ms for t in timelines if t.first_sound_ms is not None]


def _show_overlaps(overlaps: Sequence[Overlap]) -> None:
    if not overlaps:
        return
    print("\nspoken over: ms from the onset of the voice to the last audible sound of the reply")
    print_table(
        ("reply", "response", "stop", "audio after its done"),
        [
            (o.reaction.outcome, o.status, o.reaction.stop_ms, len(o.stray) or "none")
            for o in overlaps
        ],
    )
    stops = [o.reaction.stop_ms for o in overlaps if o.reaction.stop_ms is not None]
    if len(stops) >= SMALLEST_STOP:
        print(f"median {spread(stops)['median']:.0f} ms, worst {max(stops):.0f}")
    for error in {error for overlap in overlaps for error in overlap.errors}:
        print(f"error: {error}")


def _overlap_figures(overlap: Overlap) -> dict[str, Any]:
    return {
        "outcome": overlap.reaction.outcome,
        "stop_ms": overlap.reaction.stop_ms,
        "status": overlap.status,
        "answer_ms": overlap.answer_ms,
        "stray": overlap.stray,
        "errors": overlap.errors,
    }


def _held(config: Path, server: Server) -> list[Held]:
    return [] if server.pid is None else held_by_stages(load_settings(config).stages, server.pid)


def _show_memory(held: Sequence[Held], before_mib: list[int], now_mib: list[int]) -> None:
    if not now_mib:
        print("\nno card of NVIDIA's is here: nothing to say of its memory")
        return
    print(f"\nin use on the cards, MiB: {before_mib} before the server, {now_mib} now")
    print_table(
        ("stage", "MiB used", "MiB promised", "processes"),
        [(h.role, h.used_mib, h.share_mib, ", ".join(h.processes) or "-") for h in held],
    )


def _arguments() -> argparse.Namespace:
    parser = options.parser(__doc__)
    parser.add_argument("--config", type=Path, default=CONFIG, help="of the started server")
    parser.add_argument(
        "--synthetic", type=Path, metavar="FOLDER", help="make models of random weights there"
    )
    parser.add_argument("--tiny", action="store_true", help="with a voice for any CPU")
    parser.add_argument("--recording", type=Path, help="a sound file to say")
    parser.add_argument("--turns", type=int, default=3, help="after the first one")
    parser.add_argument("--interruptions", type=int, default=3)
    parser.add_argument(
        "--tokens", type=int, default=REPLY_TOKENS, help="of a reply that is heard out, at most"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
