"""Six fixed questions, spoken by the embedded voice: does the answer name the key word?"""

from __future__ import annotations

import asyncio

from benchmarks import options
from benchmarks.exchange import converse
from benchmarks.report import print_table, write_json
from benchmarks.server import serving
from benchmarks.voicing import speak_all

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
    spoken = speak_all(list(QUESTIONS))
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


if __name__ == "__main__":
    main()
