"""Cut-ins against latency, by the length of the pause.

Recordings are said in real time to a server. A cut-in is an agent that can be heard before the
speaker's last voiced sample; a turn that is committed early does no harm if nothing was heard and
one answer follows to all that was said. Both stand beside the latency, for either is easy alone.

With --judge-only no server is asked: the detector and the judge of turn ends hear the recordings,
faster than real time, and what the judge says as each silence grows is written down.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any

from benchmarks import options, plots
from benchmarks.exchange import Exchange, converse
from benchmarks.judging import SILENCES_MS, judge_all, judgement_table
from benchmarks.listening import Span, audible, is_take_over
from benchmarks.pauses import Kind, Reply, attribute, pauses_of
from benchmarks.recordings import Recording, load
from benchmarks.report import print_table, spread, write_json
from benchmarks.server import serving
from benchmarks.words import words_of
from realtime.commands.turns import Step, Turn
from realtime.commands.wire_client import WIRE_RATE_HZ

NOT_ONE_VOICE = frozenset(
    {"no-speech", "noise-only", "multi-speaker", "overlap", "background-speech", "echo"}
)
# What a server must answer: whole, in its language, in a room where pauses are silent.
NOT_ANSWERED = NOT_ONE_VOICE | {
    *("babble", "noisy", "incomplete", "language-de", "language-pt", "backchannel", "fragment"),
    *("padded", "ulaw"),
}


def main() -> None:
    chosen = _arguments()
    if chosen.judge_only:
        _judge(chosen)
        return
    recordings = _choose(load(chosen.folder, unwanted=NOT_ANSWERED), chosen.count)
    with serving(chosen.url, chosen.config) as server:
        rows = [_row(r, asyncio.run(_say(server.url, r))) for r in recordings]
    table = by_pause(rows)
    _print(rows, table)
    rates = {
        str(kind): [
            (float(r["length"]), 100 * r["cut_ins"] / r["n"]) for r in table if r["kind"] == kind
        ]
        for kind in (Kind.MID_PAUSE, Kind.TWO_UTTERANCES)
    }
    if all(rates.values()):
        svg = plots.lines("Cut-ins by length of pause", "ms of silence", "% cut in on", rates)
        plots.write("end_of_turn", svg, chosen.json.parent if chosen.json else None)
    write_json("end_of_turn", {"by_pause": table, "recordings": rows}, chosen.json)


def _arguments() -> argparse.Namespace:
    parser = options.parser(__doc__)
    options.add_recordings(parser, count=None)
    options.add_server(parser)
    parser.add_argument(
        "--judge-only", action="store_true", help="the judge's verdicts, without a server"
    )
    return parser.parse_args()


def _judge(chosen: argparse.Namespace) -> None:
    rows = judge_all(load(chosen.folder, unwanted=NOT_ONE_VOICE, limit=chosen.count))
    print_table(
        ("silence", "length", "n", *(f"at {ms}" for ms in SILENCES_MS)), judgement_table(rows)
    )
    print("\nshare of silences that the judge calls finished, by how long it has heard them")
    write_json("judge", {"silences": rows}, chosen.json)


def _choose(recordings: list[Recording], count: int | None) -> list[Recording]:
    """Up to `count` with pauses that were put in, as many with natural ones, as many without."""
    put = [r for r in recordings if r.put_pause_ms is not None]
    own = [r for r in recordings if not r.derived_from]
    natural = [r for r in own if pauses_of(r)]
    plain = [r for r in own if not pauses_of(r)]
    chosen: list[Recording] = []
    for group in (put, natural, plain):
        step = max(1, len(group) // count) if count else 1
        chosen += group[::step][:count]
    return chosen


async def _say(url: str, recording: Recording) -> Exchange:
    return await converse(url, recording.pcm, recording.first_voiced, recording.last_voiced)


def _row(recording: Recording, exchange: Exchange) -> dict[str, Any]:
    """Times of the recording's clock are those of the client less `origin_ms`."""
    per_ms = WIRE_RATE_HZ // 1000
    last_ms = recording.last_voiced / per_ms
    origin_ms = exchange.speech_end_ms - last_ms
    replies = [_reply(turn, exchange, origin_ms) for turn in exchange.turns]
    commits_ms = [
        turn.steps_ms[Step.COMMITTED] - origin_ms
        for turn in exchange.turns
        if Step.COMMITTED in turn.steps_ms
    ]
    taken = attribute(pauses_of(recording), last_ms, replies, commits_ms)
    heard_after = [r for r in replies if r.sound and r.sound[-1].end_ms > last_ms]
    full = [r for r in replies if is_take_over(r.sound, r.words)]
    first_ms = min((s.start_ms for r in replies for s in r.sound), default=None)
    is_cut_in = first_ms is not None and first_ms < last_ms
    return {
        "recording": recording.name,
        "pauses": [
            {
                "kind": t.pause.kind,
                "label": t.pause.label,
                "length_ms": t.pause.length_ms,
                "cut_in": t.is_cut_in,
                "take_over": t.is_take_over,
                "early": t.is_early,
            }
            for t in taken
        ],
        "cut_in": is_cut_in,
        "early": any(at_ms < last_ms for at_ms in commits_ms),
        # Nothing was heard too soon, and exactly one answer came, after all that was said.
        "one_answer": not is_cut_in and len(full) == 1,
        "answered": bool(heard_after),
        "latency_ms": None if first_ms is None or is_cut_in else first_ms - last_ms,
        "heard": [turn.heard for turn in exchange.turns if turn.heard],
        "said": [turn.said.strip() for turn in exchange.turns if turn.said],
        "errors": exchange.errors,
    }


def _reply(turn: Turn, exchange: Exchange, origin_ms: float) -> Reply:
    if turn.reply_item is None:
        return Reply((), None)
    heard = audible(exchange.playback.segments, WIRE_RATE_HZ, turn.reply_item)
    was_heard_out = turn.status == "completed" and not any(
        flush.item_id == turn.reply_item for flush in exchange.flushes
    )
    return Reply(
        tuple(Span(s.start_ms - origin_ms, s.end_ms - origin_ms) for s in heard),
        len(words_of(turn.said)) if was_heard_out else None,
    )


def by_pause(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per kind and length of pause, and one for recordings without any.

    The latency is that of the recordings with such a pause in which nobody was cut in on.
    """
    groups: dict[tuple[str, str], list[tuple[dict[str, Any], dict[str, Any] | None]]] = {}
    for row in rows:
        for pause in row["pauses"]:
            groups.setdefault((pause["kind"], pause["label"]), []).append((row, pause))
        if not row["pauses"]:
            groups.setdefault((Kind.END, ""), []).append((row, None))
    table: list[dict[str, Any]] = []
    for (kind, label), members in groups.items():
        pauses = [pause for _, pause in members if pause is not None]
        early = [row for row, pause in members if pause is not None and pause["early"]]
        of_rows = {row["recording"]: row for row, _ in members}.values()
        table.append(
            {
                "kind": kind,
                "length": label,
                "n": len(members),
                "cut_ins": sum(pause["cut_in"] for pause in pauses),
                "take_overs": sum(pause["take_over"] for pause in pauses),
                "early": len(early),
                "joined": sum(row["one_answer"] for row in early),
                "recordings": len(of_rows),
                "unanswered": sum(not row["answered"] for row in of_rows),
                "latency_ms": spread(
                    [r["latency_ms"] for r in of_rows if r["latency_ms"] is not None]
                ),
            }
        )
    return sorted(table, key=_order)


def _order(row: dict[str, Any]) -> tuple[int, int]:
    return list(Kind).index(row["kind"]), int(row["length"].split("-")[0] or 0)


def _print(rows: Sequence[dict[str, Any]], table: Sequence[dict[str, Any]]) -> None:
    print_table(
        ("recording", "latency", "cut in", "early", "one answer", "answered"),
        [
            (
                row["recording"],
                row["latency_ms"],
                "CUT IN" if row["cut_in"] else "",
                "early" if row["early"] else "",
                "yes" if row["one_answer"] else "NO",
                "yes" if row["answered"] else "NO",
            )
            for row in rows
        ],
    )
    print()
    print_table(
        (
            *("silence", "ms", "n", "cut-ins", "rate", "take-overs", "committed early"),
            *("then one answer", "no answer", "median", "p95"),
        ),
        [
            (
                *(row["kind"], row["length"], row["n"], row["cut_ins"]),
                f"{row['cut_ins'] / row['n']:.2f}",
                *(row["take_overs"], row["early"], row["joined"], row["unanswered"]),
                *(row["latency_ms"].get("median"), row["latency_ms"].get("p95")),
            )
            for row in table
        ],
    )


if __name__ == "__main__":
    main()
