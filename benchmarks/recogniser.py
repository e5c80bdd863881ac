"""The recogniser's word error rate over recordings with transcripts."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.hearing import hear_all
from benchmarks.recordings import load
from benchmarks.report import print_table, write_json
from benchmarks.words import word_error_rate, word_errors

CLEAN_SPEECH = "clean,read"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="recordings with manifest.jsonl")
    parser.add_argument("--tags", default=CLEAN_SPEECH, help="only recordings with all of these")
    parser.add_argument("--count", type=int, help="at most so many")
    parser.add_argument("--json", type=Path, help="where the figures go")
    options = parser.parse_args()
    wanted = frozenset(filter(None, options.tags.split(",")))
    recordings = [r for r in load(options.folder, wanted, limit=options.count) if r.text]
    heard = hear_all([recording.pcm for recording in recordings])
    pairs = [(r.text, text) for r, text in zip(recordings, heard, strict=True)]
    wrong = [(word_errors(*pair), *pair) for pair in pairs]
    wrong.sort(key=lambda row: row[0][0], reverse=True)
    print_table(("errors", "said", "heard"), [(f"{e}/{n}", s, h) for (e, n), s, h in wrong[:10]])
    rate = word_error_rate(pairs)
    print(f"\nword error rate: {rate:.3f} over {len(pairs)} recordings")
    write_json("recogniser", {"wer": rate, "recordings": len(pairs)}, options.json)


if __name__ == "__main__":
    main()
