"""What an agent does when somebody makes a sound while it speaks.

Over a long reply, people interrupt, murmur, cough, speak to others, and rooms make noise. To whom
it is spoken to, an agent yields; for all else it goes on. All categories are measured in one run
with one setting, since each alone is easy.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks import options, plots
from benchmarks.interrupting import Overlap, talk_over
from benchmarks.listening import Outcome
from benchmarks.report import print_table, spread, write_json
from benchmarks.server import serving
from benchmarks.sounds import Category, Sound, gather


def main() -> None:
    chosen = _arguments()
    wanted = {Category(name) for name in chosen.only} or set(Category)
    sounds = [sound for sound in gather(chosen.folder, chosen.count) if sound.category in wanted]
    rows: list[dict[str, Any]] = []
    with serving(chosen.url, chosen.config) as server:
        for _ in range(chosen.repeat):
            rows += [_row(sound, talk_over(server.url, sound.pcm)) for sound in sounds]
    summary = summarise(rows)
    _print(rows, summary)
    stops = {
        str(category): [row["stop_ms"] for row in rows if _has_yielded(row, category)]
        for category in Category
        if category.should_yield
    }
    if all(stops.values()):
        title = "From the onset of an interruption to the end of audible speech"
        folder = chosen.json.parent if chosen.json else None
        plots.write("overlap", plots.distribution(title, "ms", stops), folder)
    write_json("overlap", {"summary": summary, "sounds": rows}, chosen.json)


def _arguments() -> argparse.Namespace:
    parser = options.parser(__doc__)
    options.add_recordings(parser, count=12)
    options.add_server(parser)
    parser.add_argument("--repeat", type=int, default=1, help="how often each sound is made")
    parser.add_argument(
        "--only", nargs="*", default=[], choices=[*Category], help="these categories alone"
    )
    return parser.parse_args()


def _row(sound: Sound, overlap: Overlap) -> dict[str, Any]:
    reaction = overlap.reaction
    is_cut = reaction.outcome is Outcome.YIELDED
    return {
        "category": sound.category,
        "sound": sound.name,
        "length_ms": overlap.sound.length_ms,
        "outcome": reaction.outcome,
        "stop_ms": reaction.stop_ms,
        "gap_ms": reaction.gap_ms,
        "status": overlap.status,
        "heard": overlap.heard,
        "committed": overlap.is_committed,
        "answered": overlap.answer_ms is not None,
        "answer_ms": overlap.answer_ms,
        # The reply was lost, yet nobody had said anything: the agent speaks on in a new one.
        "began_again": is_cut and not overlap.is_committed and overlap.answer_ms is not None,
        "stray": list(overlap.stray),
        "errors": list(overlap.errors),
    }


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Figures of each category, over the sounds that a reply was really speaking under."""
    summary: list[dict[str, Any]] = []
    for category in Category:
        all_of_it = [row for row in rows if row["category"] == category]
        mine = [row for row in all_of_it if row["outcome"] != Outcome.UNMEASURED]
        if not all_of_it:
            continue
        count = {outcome: sum(row["outcome"] == outcome for row in mine) for outcome in Outcome}
        stops = [row["stop_ms"] for row in mine if row["outcome"] == Outcome.YIELDED]
        gaps = [row["gap_ms"] for row in mine if row["outcome"] == Outcome.RESUMED]
        went_on = count[Outcome.TALKED_ON] + count[Outcome.RESUMED]
        summary.append(
            {
                "category": category,
                "n": len(mine),
                "unmeasured": len(all_of_it) - len(mine),
                "should_yield": category.should_yield,
                "yielded": count[Outcome.YIELDED],
                "talked_on": count[Outcome.TALKED_ON],
                "resumed": count[Outcome.RESUMED],
                "began_again": sum(row["began_again"] for row in mine),
                "right": count[Outcome.YIELDED] if category.should_yield else went_on,
                "cancelled": sum(row["status"] == "cancelled" for row in mine),
                "committed": sum(row["committed"] for row in mine),
                "answered": sum(row["answered"] for row in mine),
                "stop_ms": spread(stops),
                "gap_ms": spread(gaps),
            }
        )
    return summary


def _has_yielded(row: dict[str, Any], category: Category) -> bool:
    return row["category"] == category and row["outcome"] == Outcome.YIELDED


def _print(rows: list[dict[str, Any]], summary: list[dict[str, Any]]) -> None:
    columns = ("sound", "outcome", "stop", "gap", "committed", "answer", "heard")
    print_table(
        columns,
        [
            (
                row["sound"],
                row["outcome"],
                row["stop_ms"],
                row["gap_ms"],
                "yes" if row["committed"] else "",
                row["answer_ms"],
                row["heard"],
            )
            for row in rows
        ],
    )
    print()
    print_table(
        (
            *("category", "n", "right", "yielded", "talked on", "resumed", "gap", "began again"),
            *("committed", "answered", "stop median", "stop p95"),
        ),
        [
            (
                *(row["category"], row["n"], f"{row['right']}/{row['n']}", row["yielded"]),
                *(row["talked_on"], row["resumed"], row["gap_ms"].get("median")),
                *(row["began_again"], row["committed"], row["answered"]),
                *(row["stop_ms"].get("median"), row["stop_ms"].get("p95")),
            )
            for row in summary
        ],
    )
    stops = [
        row["stop_ms"]
        for row in rows
        if Category(row["category"]).should_yield and row["outcome"] == Outcome.YIELDED
    ]
    if stops:
        figures = spread(stops)
        print(
            f"\nstop latency of interruptions: median {figures['median']:.0f} ms, "
            f"p95 {figures['p95']:.0f} (n {len(stops)})"
        )
    print(f"events of a response after its done: {sum(len(row['stray']) for row in rows)}")


if __name__ == "__main__":
    main()
