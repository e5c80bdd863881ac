"""The recogniser's word error rate over recordings with transcripts."""

from __future__ import annotations

from benchmarks import options
from benchmarks.hearing import hear_all
from benchmarks.recordings import load
from benchmarks.report import print_table, write_json
from benchmarks.words import word_error_rate, word_errors

CLEAN_SPEECH = "clean,read"


def main() -> None:
    parser = options.parser(__doc__)
    options.add_recordings(parser, count=None)
    parser.add_argument("--tags", default=CLEAN_SPEECH, help="only recordings with all of these")
    chosen = parser.parse_args()
    wanted = frozenset(filter(None, chosen.tags.split(",")))
    recordings = [r for r in load(chosen.folder, wanted, limit=chosen.count) if r.text]
    heard = hear_all([recording.pcm for recording in recordings])
    pairs = [(r.text, text) for r, text in zip(recordings, heard, strict=True)]
    wrong = [(word_errors(*pair), *pair) for pair in pairs]
    wrong.sort(key=lambda row: row[0][0], reverse=True)
    print_table(("errors", "said", "heard"), [(f"{e}/{n}", s, h) for (e, n), s, h in wrong[:10]])
    rate = word_error_rate(pairs)
    print(f"\nword error rate: {rate:.3f} over {len(pairs)} recordings")
    write_json("recogniser", {"wer": rate, "recordings": len(pairs)}, chosen.json)


if __name__ == "__main__":
    main()
