from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.numbers import cardinal, digit_by_digit, ordinal
from pipelines.text.spoken import spoken
from tests.pipelines.waiting import UNHURRIED


@pytest.mark.parametrize(
    ("display", "said"),
    [
        ("**Bold** and _slanted_ `code` and snake_case.", "Bold and slanted code and snake case."),
        ("# Title\n> quoted\n- one *thing*\n+ more", "Title quoted one thing more"),
        ("~~old~~ | cell | <b>", "old cell b"),
        ("[the docs](https://x.org/a?b)!", "the docs!"),
        ("click [here", "click here"),
        ("and there](https://x.org/a).", "and there."),
        ("at https://www.example.com/path/x.html, ok?", "at example dot com, ok?"),
        ("mail bob.k@ex.org now", "mail bob dot k at ex dot org now"),
        ("It's 3:30 pm or 3:05.", "It's three thirty pm or three oh five."),
        ("at 3:00, at 3:00 pm", "at three o'clock, at three pm"),
        ("$5", "five dollars"),
        ("$5.50", "five dollars and fifty cents"),
        ("$5.500", "five point five zero zero dollars"),
        ("£2.01 or €1", "two pounds and one penny or one euro"),
        ("$1,234", "one thousand two hundred thirty four dollars"),
        ("$1.2 million", "one point two million dollars"),
        ("50% of 3.5", "fifty percent of three point five"),
        ("2,000,000", "two million"),
        ("the 21st and 12th and 30th", "the twenty first and twelfth and thirtieth"),
        ("in 1999, 2024 and the 1990s", "in 1999, 2024 and the 1990s"),
        (
            "1999.5 and $2024",
            "one thousand nine hundred ninety nine point five and two thousand twenty four dollars",
        ),
        ("v1.2.3 on B2B", "v one point two point three on B two B"),
        ("-5 to 5-10", "minus five to five to ten"),
        ("5 - 3 and 10-12", "five minus three and ten to twelve"),
        ("24/7 and 1/2", "twenty four seven and one half"),
        ("call 555-0199", "call five five five zero one nine nine"),
        ("007", "zero zero seven"),
        ("2 + 2 = 4", "two plus two equals four"),
        ("R&D, 20°", "R and D, twenty degrees"),
        ("#1", "number one"),
        ("hi 👍🏽!", "hi!"),
        ("👨\u200d👩\u200d👧 ☀️ 🎉", ""),
        ("---\n***", ""),
        ("...", ""),
        ("", ""),
        ("你好，现在3点！😀", "你好，现在3点！"),
        ("Привет, Ωmega, héllo", "Привет, Ωmega, héllo"),
        ("안녕하세요 여러분", "안녕하세요 여러분"),
    ],
)
def test_examples(display: str, said: str) -> None:
    assert spoken(display) == said


@UNHURRIED
@given(st.text(max_size=60))
def test_any_text_gives_clean_text(display: str) -> None:
    said = spoken(display)
    assert said == " ".join(said.split())
    assert not set(said) & set("*`~|\\<>[]{}#_")


@UNHURRIED
@given(st.integers(0, 10**15), st.sampled_from(["", ".5", ".500", "%", "st", " km"]))
def test_no_digit_of_a_number_survives_but_a_year(number: int, tail: str) -> None:
    said = spoken(f"so {number}{tail}, then")
    if not (tail in ("", " km") and 1100 <= number < 2100):
        assert not any(char.isdigit() for char in said)


def test_numbers_have_their_names() -> None:
    assert cardinal(0) == "zero"
    assert cardinal(115) == "one hundred fifteen"
    assert cardinal(1_000_001) == "one million one"
    assert cardinal(999_999_999_999).startswith("nine hundred ninety nine billion")
    assert ordinal(1003) == "one thousand third"
    assert ordinal(100) == "one hundredth"
    assert digit_by_digit("042") == "zero four two"


@UNHURRIED
@given(st.integers(0, 10**12 - 1))
def test_names_of_numbers_are_read_back(number: int) -> None:
    assert read_back(cardinal(number)) == number


def read_back(said: str) -> int:
    """An independent reading of English number words."""
    units = {cardinal(n): n for n in range(20)} | {cardinal(n): n for n in range(20, 100, 10)}
    scales = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
    total = part = 0
    for word in said.split():
        if word in units:
            part += units[word]
        elif word == "hundred":
            part *= 100
        else:
            total += part * scales[word]
            part = 0
    return total + part
