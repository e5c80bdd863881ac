"""From the onset of an interrupting voice to the end of the agent's audible speech.

It is the end that a listener hears: where playing was silenced, or where the audio that the server
had sent ran out.
"""

from __future__ import annotations

import argparse

from benchmarks import options
from benchmarks.interrupting import Overlap, talk_over
from benchmarks.listening import Outcome
from benchmarks.recordings import Recording, load
from benchmarks.report import print_table, spread, write_json
from benchmarks.server import serving
from benchmarks.voice_to_voice import UNSUITABLE


def main() -> None:
    chosen = _arguments()
    recordings = load(chosen.folder, unwanted=UNSUITABLE, limit=chosen.count)
    with serving(chosen.url, chosen.config) as server:
        results = [(r, talk_over(server.url, r.pcm[r.first_voiced :])) for r in recordings]
        memory_mib = server.memory_mib()
    rows = [_row(*result) for result in results]
    print_table(
        ("recording", "stop", "reply", "response"),
        [(r["recording"], r["stop_ms"], r["outcome"], r["status"]) for r in rows],
    )
    yielded = [row for row in rows if row["outcome"] == Outcome.YIELDED]
    figures = spread(
        [
            r.reaction.stop_ms
            for _, r in results
            if r.reaction.outcome is Outcome.YIELDED and r.reaction.stop_ms is not None
        ]
    )
    if figures:
        print(
            f"\nbarge-in: median {figures['median']:.0f} ms, p95 {figures['p95']:.0f}, from "
            f"{figures['min']:.0f} to {figures['max']:.0f} (n {len(yielded)})"
        )
    print(f"yielded: {len(yielded)} of {len(rows)}")
    print(f"events of a response after its done: {sum(len(r.stray) for _, r in results)}")
    write_json(
        "barge_in",
        {
            "stop_ms": figures,
            "yielded": len(yielded),
            "interruptions": rows,
            "memory_mib": memory_mib,
        },
        chosen.json,
    )


def _row(recording: Recording, overlap: Overlap) -> dict[str, object]:
    return {
        "recording": recording.name,
        "stop_ms": overlap.reaction.stop_ms,
        "outcome": overlap.reaction.outcome,
        "status": overlap.status,
    }


def _arguments() -> argparse.Namespace:
    parser = options.parser(__doc__)
    options.add_recordings(parser, count=20)
    options.add_server(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
