from __future__ import annotations

import html
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipelines.text.spoken import spoken
from tests.pipelines.text.snippets import BROKEN, ENGLISH, EXPECTED, SCRIPTS, TEXTS
from tests.pipelines.waiting import UNHURRIED

# Nothing of these is ever right in what an English voice is given.
FORBIDDEN = re.compile(r"[\d*`~|\\<>\[\]{}#_^=+@%$€£¥°&/§©]|[^\W\d]\d|--")


def forbidden_in(said: str) -> list[str]:
    return [
        char for char in said if FORBIDDEN.match(char) or unicodedata.category(char) in ("So", "No")
    ]


@pytest.mark.parametrize(("display", "said"), EXPECTED)
def test_examples(display: str, said: str) -> None:
    assert spoken(display) == said


def test_there_are_enough_of_them() -> None:
    assert len(TEXTS) == len(set(TEXTS)) >= 500
    assert len(EXPECTED) >= 400


@pytest.mark.parametrize("display", [display for display, _ in ENGLISH] + BROKEN[:-1])
def test_no_digit_and_no_mark_survives_in_english(display: str) -> None:
    assert forbidden_in(spoken(display)) == []


@pytest.mark.parametrize("display", TEXTS)
def test_what_is_spoken_text_already_stays_as_it_is(display: str) -> None:
    said = spoken(display)
    assert spoken(said) == said


@pytest.mark.parametrize("display", [display for display, _ in SCRIPTS])
def test_no_letter_of_any_script_is_lost(display: str) -> None:
    plain = re.sub(r"\(https?://[^)]*\)", "", display)
    said = spoken(display)
    assert [char for char in said if char.isalpha() and ord(char) > 0x24F] == [
        char for char in plain if char.isalpha() and ord(char) > 0x24F
    ]
    if not re.search(r"[\d\[*`]", display):
        assert said == "".join(
            char for char in display if unicodedata.category(char) != "So"
        )  # needed spaces included


# Words, and the marks around them that need not be said.
WORDS = (
    "house tree *slanted* `code` _low_ ~~gone~~ [link](url) (so) snake_case end. [old](u).".split()
)
WORDS += [
    "**strong words**",
    "![alt text](p.png)",
    "un**kn**own",
    "*very **deep** inside*",
    "as <b>bold</b> as",
]
MARKED_LINES = st.lists(
    st.tuples(
        st.sampled_from(["", "", "- ", "# ", "### ", "> ", "* ", "\n", "  - ", "---\n"]),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
    ).map("".join),
    max_size=6,
).map("\n".join)


@UNHURRIED
@given(MARKED_LINES)
def test_markdown_says_what_a_renderer_would_show(display: str) -> None:
    shown = MarkdownIt("commonmark").enable("strikethrough").render(display)
    shown = re.sub(r'<img [^>]*alt="([^"]*)"[^>]*>', r"\1", shown)
    shown = html.unescape(re.sub(r"<[^>]*>", "", shown))
    assert letters_of(spoken(display)) == letters_of(shown)


def letters_of(text: str) -> str:
    return "".join(char for char in text if char.isalpha())


@UNHURRIED
@given(st.text(max_size=60))
def test_any_text_gives_clean_text(display: str) -> None:
    said = spoken(display)
    assert said == " ".join(said.split())
    assert not set(said) & set("*`~|\\<>[]{}#_^\0")


@UNHURRIED
@given(st.text(alphabet=st.characters(max_codepoint=126), max_size=40))
def test_any_ascii_text_loses_its_digits_and_marks(display: str) -> None:
    assert forbidden_in(spoken(display)) == []


@UNHURRIED
@given(
    st.sampled_from(["", "$", "€", "-", "~", "v", "#", "No. ", "p. "]),
    st.integers(0, 10**17),
    st.sampled_from(["", ".5", ".500", ",5", ":30", "/2", "-7", "–7", " 7"]),
    st.sampled_from(
        ["", "%", "st", " km", "km/h", "°C", "k", " million", " pm", "s", "x", "!", ","]
    ),
)
def test_no_digit_of_a_number_survives(before: str, number: int, middle: str, tail: str) -> None:
    said = spoken(f"so {before}{number}{middle}{tail} then")
    assert forbidden_in(said) == [] and said.startswith("so ") and said.endswith(" then")
