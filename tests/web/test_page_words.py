"""Where the page divides a text into words that light up one by one, and where it is cut."""

from __future__ import annotations

import pytest

from tests.web.page_scripts import run

TEXTS = [
    "",
    "Hello",
    " Hello,  there. \n\nHow are you? ",
    "   ",
    "don't e.g. 3.14 — ok…",
    "今日はとても良い天気ですね。散歩に行きましょう。",
    "Tokyo は 東京 です. OK",
    "สวัสดีครับ ยินดีต้อนรับ",
    "مرحبا، كيف حالك اليوم؟",
    "🏴‍☠️ flags 👩‍👩‍👧 and families",
]


def split(text: str, start: int = 0) -> list[str]:
    body = """
      const words = splitWords(text, start);
      let at = start;
      for (const word of words) {
        if (word.start !== at || word.end <= word.start) throw new Error(`a gap at ${at}`);
        at = word.end;
      }
      if (at !== text.length) throw new Error(`nothing after ${at}`);
      return words.map((word) => text.slice(word.start, word.end));
    """
    return run("words.js", "splitWords", body, text=text, start=start)


def cut(text: str, place: int | None) -> list[str]:
    body = """
      return cutWords(splitWords(text), place).map((word) => text.slice(word.start, word.end));
    """
    return run("words.js", "splitWords, cutWords", body, text=text, place=place)


@pytest.mark.parametrize("text", TEXTS)
def test_words_cover_the_text_without_a_gap(text: str) -> None:
    assert "".join(split(text)) == text


def test_a_word_carries_its_spaces_and_marks() -> None:
    assert split(" Hello,  there. ") == [" Hello,  ", "there. "]
    assert split("don't e.g. 3.14") == ["don't ", "e.g. ", "3.14"]


def test_scripts_without_spaces_have_words_too() -> None:
    words = split("今日はとても良い天気ですね。散歩に行きましょう。")
    assert len(words) > 5
    assert not any(word.startswith("。") for word in words)
    assert len(split("สวัสดีครับ")) > 1


def test_a_text_that_grows_is_divided_from_where_it_was() -> None:
    text = "A return for two adults is eighteen pounds forty."
    assert split(text, len("A return ")) == split(text)[2:]


def test_a_cut_divides_the_word_it_lies_in() -> None:
    assert cut("free bicycles travel", 7) == ["free ", "bi", "cycles ", "travel"]
    assert cut("free bicycles", 5) == ["free ", "bicycles"]
    assert cut("free bicycles", 0) == ["free ", "bicycles"]
    assert cut("free bicycles", None) == ["free ", "bicycles"]
