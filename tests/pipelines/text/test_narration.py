"""What holds of every reply, however it is written: the splits, the places, the bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.characters import CharacterJoiner
from pipelines.text.chunker import MOST_CHARS, STEPS, Utterance
from pipelines.text.look_ahead import HELD_CHARS
from pipelines.text.narration import Narration, narrate
from pipelines.text.reading import CODE_NOTICE
from pipelines.text.segments import FENCE_CHARS, RUN_CHARS
from pipelines.text.spoken import spoken
from tests.pipelines.text.snippets import TEXTS
from tests.pipelines.waiting import UNHURRIED

# What the reader holds, then what the chunker collects before it must cut.
MOST_HELD_CHARS = 2 * RUN_CHARS + 2 * MOST_CHARS


def narrated(*deltas: str) -> list[Utterance]:
    narration = Narration()
    found = [utterance for delta in deltas for utterance in narration.feed(delta)]
    found += narration.finish()
    assert not narration.pending
    return found


def said(utterances: list[Utterance]) -> str:
    return "".join(utterance.spoken for utterance in utterances).strip()


def check_places(display: str, utterances: list[Utterance]) -> None:
    """The spans cover the display exactly, word by word, and never go back."""
    covered = 0
    for utterance in utterances:
        assert covered < utterance.end or (covered == utterance.end and utterance.spoken)
        assert bool(utterance.spoken) == bool(utterance.words)
        ends = [word.end for word in utterance.words]
        assert ends == sorted(set(ends))
        words = utterance.spoken.split()
        assert {len(utterance.spoken[:end].split()) for end in ends} == set(
            range(1, len(words) + 1)
        )
        for word in utterance.words:
            assert covered <= word.display_end <= utterance.end
            covered = word.display_end
            assert utterance.spoken[word.end : word.end + 1] in ("", " ") or not (
                utterance.spoken[word.end - 1].isascii()
            )
        assert not utterance.words or covered == utterance.end
        covered = utterance.end
    assert covered == len(display)


@pytest.mark.parametrize("display", TEXTS)
def test_splits_make_no_difference(display: str) -> None:
    whole = narrated(display)
    check_places(display, whole)
    assert narrated(*display) == whole
    for cut in range(len(display) + 1):
        assert narrated(display[:cut], display[cut:]) == whole


@UNHURRIED
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4), st.data())
def test_many_splits_of_longer_replies_make_no_difference(
    snippets: list[str], data: st.DataObject
) -> None:
    display = data.draw(st.sampled_from([" ", "\n", "\n\n", ""])).join(snippets)
    whole = narrated(display)
    check_places(display, whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(display)), max_size=30)))
    pieces = [display[i:j] for i, j in zip([0, *cuts], [*cuts, len(display)], strict=True)]
    assert narrated(*pieces) == whole


@UNHURRIED
@given(st.text(max_size=80), st.lists(st.integers(0, 9), max_size=40))
def test_any_text_may_be_split_anywhere(display: str, sizes: list[int]) -> None:
    pieces: list[str] = []
    rest = display
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    whole = narrated(display)
    check_places(display, whole)
    assert narrated(*pieces, rest) == whole


@UNHURRIED
@given(st.lists(st.tuples(st.sampled_from(TEXTS), st.booleans()), max_size=6))
def test_pauses_lose_and_repeat_nothing(pieces: list[tuple[str, bool]]) -> None:
    narration = Narration()
    found: list[Utterance] = []
    for text, pauses in pieces:
        found += narration.feed(text)
        if pauses:
            found += narration.pause()
            found += narration.pause()
    found += narration.finish()
    check_places("".join(text for text, _ in pieces), found)


@pytest.mark.parametrize(
    ("display", "words"),
    [
        ("It is $5.50 now", ["It |", "is |", "", "", "", "", "$5.50 |", "now|"]),
        ("**Bold** words 😀 here", ["**Bold** |", "words 😀 |", "here|"]),
        ("Run 5 km [now](x.y)!", ["Run |", "5|", " km |", "[now](x.y)!|"]),
        ("On Nov 29, 2026", ["On |", "", "", "", "", "", "Nov 29, 2026|"]),
        ("你好吗", ["你|", "好|", "吗|"]),
    ],
)
def test_each_word_has_its_place(display: str, words: list[str]) -> None:
    ends = [word.display_end for one in narrated(display) for word in one.words]
    places = [display[i:j] for i, j in zip([0, *ends], ends, strict=False)]
    assert [f"{place}|" if place else "" for place in places] == words


def test_code_is_announced_once_and_covered_by_what_was_said_before() -> None:
    code = "```python\n" + "value = 1\n" * 200 + "```\n"
    found = narrated("See this:\n", *code, "And on we go.")
    assert said(found) == f"See this: {CODE_NOTICE} And on we go."
    check_places(f"See this:\n{code}And on we go.", found)


# ---- the bounds ----------------------------------------------------------------------------------

ENDLESS = {
    "a sentence without a mark": "word " * 10_000,
    "a word": "x" * 5_000,
    "only marks": "*_`~" * 1_000,
    "only emoji": "😀" * 3_000,
    "spaced emoji": "😀 " * 2_000,
    "only rules of tables": "|---|" * 1_000,
    "rule rows": "|---|\n" * 1_000,
    "only spaces": " " * 3_000,
    "only lines": "\n" * 3_000,
    "only nulls": "\0" * 3_000,
    "only lone surrogates": "\ud83d" * 3_000,
    "only digits": "5" * 3_000,
    "numbers": "5 " * 2_000,
    "sums": "+ 5 " * 1_000,
    "months": "Nov " * 1_000,
    "titles": "Dr. " * 1_000,
    "dots": "a." * 2_000,
    "commas": "1," * 2_000,
    "wide": "你好" * 1_000,
    "wide marks": "。" * 3_000,
    "accents": "e\u0301" * 2_000,
    "bold that never closes": "**" + "word " * 1_000,
    "a fence that never closes": "```\n" + "x = 1\n" * 2_000,
    "a fence in one line": "```\n" + "x = 1 " * 2_000,
    "a fence's opening without an end": "```" + "x " * 2_000,
    "code that never closes": "`" + "word " * 1_000,
    "code that opens again and again": "`word " * 1_000,
    "a link that never closes": "[text](" + "word " * 1_000,
    "an address without an end": "[text](http://" + "x" * 3_000,
    "brackets": "[" * 3_000,
    "links that open": "](" * 1_500,
    "a tag that never closes": "<a " + "word " * 1_000,
    "tags that open": "<a " * 1_000,
    "a comment that never closes": "<!-- " + "word " * 1_000,
    "a formula that never closes": "$x " + "+ y " * 1_000,
    "formulas that open": "\\( " * 1_000,
    "display formulas that open": "$$ a " * 1_000,
    "dollars": "$" * 3_000,
    "headings": "# " * 1_500,
    "quotes": "> " * 1_500,
    "bullets": "* " * 1_500,
}


@pytest.mark.parametrize("name", ENDLESS)
def test_text_flows_on_whatever_is_written(name: str) -> None:
    display = ENDLESS[name]
    narration = Narration()
    found: list[Utterance] = []
    most_held = 0
    for number, char in enumerate(display, start=1):
        found += narration.feed(char)
        most_held = max(most_held, number - (found[-1].end if found else 0))
    found += narration.finish()
    check_places(display, found)
    assert most_held <= MOST_HELD_CHARS
    assert max(len(utterance.spoken) for utterance in found) <= 2 * MOST_CHARS
    assert max(len(utterance.words) for utterance in found) <= 2 * STEPS[-1].most_words


def test_ten_thousand_words_without_a_mark_are_all_said_in_bounded_chunks() -> None:
    found = narrated("word " * 10_000)
    assert sum(len(utterance.words) for utterance in found) == 10_000
    assert max(len(utterance.words) for utterance in found) == STEPS[-1].most_words


@pytest.mark.parametrize(
    "opening", ["**", "`", "[", "[text](", "<a ", "<!-- ", "$x ", "\\(", "~~~ "]
)
def test_what_never_closes_is_spoken_as_text(opening: str) -> None:
    words = " ".join(["plain", "words", "follow"] * 100)
    assert said(narrated(opening + words)).count("follow") == 100


def test_a_fence_that_never_closes_ends_after_a_while() -> None:
    display = "```\n" + "x = 1\n" * (FENCE_CHARS // 6) + "x = 2\nWe can speak again.\n"
    assert said(narrated(display)).endswith("We can speak again.")


def test_what_is_held_is_given_up_soon() -> None:
    narration = Narration()
    for char in "Look at this `code ":
        narration.feed(char)
    fed = 0
    while not narration.feed("word "):
        fed += 5
        assert fed <= HELD_CHARS + 5


# ---- bad input -----------------------------------------------------------------------------------


def test_null_characters_are_not_said() -> None:
    assert spoken("a\0b \0 c") == "ab c"


def test_lone_surrogates_are_not_said_even_if_nobody_joined_them() -> None:
    assert spoken("one \ud83d two") == "one two"
    joiner = CharacterJoiner()
    found = narrated(*(joiner.feed(half) for half in ("so \ud83d", "\ude00 it", " is \ud83d", ".")))
    assert said(found) == "so it is."


@pytest.mark.parametrize(
    "display", ["", "***", "😀😃", "|---|---|\n", "\n\n", "---", "\0", "[]()", "#"]
)
def test_only_what_cannot_be_said_moves_the_position_alone(display: str) -> None:
    found = narrated(display)
    assert [(one.spoken, one.words) for one in found] == [("", ())] * bool(display)
    check_places(display, found)


# ---- texts that are whole ------------------------------------------------------------------------


def test_a_whole_text_is_one_utterance_at_its_place() -> None:
    found = narrate("Sorry, it costs $5. I cannot say more than that today.", 100)
    assert found.spoken == "Sorry, it costs five dollars. I cannot say more than that today."
    assert found.end == found.words[-1].display_end == 154
    assert found.words[0].display_end == 107
