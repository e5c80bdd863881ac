from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.number_words import cardinal, decimal, digit_by_digit, fraction, ordinal, year
from pipelines.text.spoken import spoken
from tests.pipelines.waiting import UNHURRIED


def test_numbers_have_their_names() -> None:
    assert cardinal(0) == "zero"
    assert cardinal(115) == "one hundred fifteen"
    assert cardinal(1_000_001) == "one million one"
    assert cardinal(999_999_999_999).startswith("nine hundred ninety nine billion")
    assert ordinal(1003) == "one thousand third"
    assert ordinal(100) == "one hundredth"
    assert digit_by_digit("042") == "zero four two"
    assert decimal("1,234.50") == "one thousand two hundred thirty four point five zero"
    assert [fraction(1, 2), fraction(3, 4)] == ["one half", "three quarters"]
    assert [fraction(2, 3), fraction(1, 20)] == ["two thirds", "one twentieth"]


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1066, "ten sixty six"),
        (1900, "nineteen hundred"),
        (1905, "nineteen oh five"),
        (1999, "nineteen ninety nine"),
        (2000, "two thousand"),
        (2005, "two thousand five"),
        (2026, "twenty twenty six"),
    ],
)
def test_years(number: int, said: str) -> None:
    assert year(number) == said


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


def test_every_minute_of_the_day_is_told_apart() -> None:
    """A clock time that lost its minutes, or its hours, would be told like another one."""
    said = {spoken(f"{hour}:{minute:02}") for hour in range(24) for minute in range(60)}
    assert len(said) == 24 * 60
    assert not any(char.isdigit() or char == ":" for time in said for char in time)


def test_every_day_and_every_year_is_told_apart() -> None:
    days = {spoken(f"2026-{month:02}-{day:02}") for month in range(1, 13) for day in range(1, 32)}
    assert len(days) == 12 * 31
    years = {spoken(f"in {number}") for number in range(1000, 2100)}
    assert len(years) == 1100
    assert not any(char.isdigit() for told in days | years for char in told)


@UNHURRIED
@given(st.integers(0, 10**6), st.integers(0, 99))
def test_sums_of_money_are_told_apart(dollars: int, cents: int) -> None:
    said = spoken(f"${dollars}.{cents:02}")
    whole, _, rest = said.rpartition(" and ") if " and " in said else (said, "", "")
    if dollars or not cents:
        assert read_back(whole.removesuffix("s").removesuffix(" dollar")) == dollars
        assert read_back(rest.removesuffix("s").removesuffix(" cent")) == cents
    else:
        assert read_back(said.removesuffix("s").removesuffix(" cent")) == cents
