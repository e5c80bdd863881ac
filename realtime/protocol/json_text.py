"""Reads the JSON of a stranger: bounded in depth and in size, and exact.

Beyond the grammar of RFC 8259 this refuses what takes too long to read, and what would be read
differently by different readers or could not be echoed: duplicate keys, NaN and infinities, numbers
beyond a double, lone surrogates.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn, cast

from realtime.protocol.problems import Problem, excerpt, type_name

MAX_DEPTH = 64  # JSON Schemas of tools nest about 20 deep; validators must not run out of stack
MAX_MARKS = 50_000  # reading stays below about 0.1 s, in which nobody else's audio moves
MAX_STRINGS = 2 * MAX_MARKS  # a mark comes before every member: two strings at most
MOST_BYTES_PER_CHARACTER = 12  # of what `compact` makes of a text: an escaped pair
MAX_SEARCHED_CHARACTERS = 64 * 1024  # where an unreadable event's id is looked for; 15 ms at most


class Unreadable(ValueError):
    """The text is no event. `problem` says why, in the wire's words."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def read_object(text: str) -> dict[str, Any]:
    """A JSON object from text. Raises Unreadable, and nothing else."""
    _check_characters(text)
    # Counting is far cheaper than parsing, and 20 MiB of base64 hold none of these marks.
    openings, commas = _count_marks(text)
    if openings + commas > MAX_MARKS:
        bare = _without_strings(text)
        openings, commas = _count_marks(bare)
        if openings + commas > MAX_MARKS:
            raise _too_many_marks()
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _not_json(f"{error.msg} at character {error.pos}") from None
    except RecursionError:
        raise _too_deep() from None
    except Unreadable:
        raise
    except ValueError:  # an integer of thousands of digits
        raise _not_json("a number has too many digits") from None
    if not isinstance(value, dict):
        raise Unreadable(
            Problem(
                "invalid_event",
                f"An event must be a JSON object, but got {type_name(value)}.",
                None,
            )
        )
    event = cast("dict[str, Any]", value)
    if openings > MAX_DEPTH or _may_escape_surrogates(text):
        _check_values(event)
    return event


def find_text(text: str, name: str) -> str | None:
    """The string member `name` of an object that may be faulty anywhere behind it, else None.

    Only whole members of the outermost object count, of which this must be the only one so called
    as far as the text can be read at all. Values are not judged: NaN or a key that comes twice
    inside another member hides nothing.
    """
    text = text[:MAX_SEARCHED_CHARACTERS]
    found: list[object] = []
    at = _after(text, 0, "{")
    while at is not None:
        try:
            key, at = _LENIENT.raw_decode(text, at)
            colon = _after(text, at, ":") if isinstance(key, str) else None
            if colon is None:
                break
            value, at = _LENIENT.raw_decode(text, colon)
        except (ValueError, RecursionError):
            break
        if key == name:
            found.append(value)
        at = _after(text, at, ",")
    match found:
        case [str() as only] if _is_text(only):
            return only
        case _:
            return None


def compact(value: object) -> str:
    """Any JSON value as the shortest ASCII text, which every transport can carry."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _count_marks(text: str) -> tuple[int, int]:
    """How many objects and arrays begin, and how many commas there are."""
    return text.count("{") + text.count("["), text.count(",")


def _without_strings(text: str) -> str:
    """JSON without what it quotes: a table in a tool's output is one value. Raises Unreadable."""
    bare, strings = _STRING.subn("", text, count=MAX_STRINGS + 1)
    if strings > MAX_STRINGS:
        raise _too_many_marks()
    return bare


def _after(text: str, at: int, mark: str) -> int | None:
    """Behind `mark` and the space around it, if it comes next."""
    found = _SPACED[mark].match(text, at)
    return found.end() if found else None


def _check_characters(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _lone_surrogate(f"at character {error.start}") from None


def _may_escape_surrogates(text: str) -> bool:
    return "\\" in text and ("\\ud" in text or "\\uD" in text)


def _check_values(root: object) -> None:
    """Depth, and strings whose escapes name half a character."""
    waiting: list[tuple[object, int]] = [(root, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise _too_deep()
        match value:
            case str():
                if not _is_text(value):
                    raise _lone_surrogate("in an escape")
            case dict():
                for key, member in cast("dict[str, object]", value).items():
                    if not _is_text(key):
                        raise _lone_surrogate("in an escape")
                    waiting.append((member, depth + 1))
            case list():
                waiting.extend((member, depth + 1) for member in cast("list[object]", value))
            case _:
                pass


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                name = excerpt(key) if _is_text(key) else "with a lone surrogate"
                raise _not_json(f"an object has the key {name} twice")
            seen.add(key)
    return members


def _float_of(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _not_json(f"the number {digits[:20]} is beyond the range of a double")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise _not_json(f"{name} is not a JSON value")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object_of, parse_float=_float_of, parse_constant=_refuse_constant
)


def _no_number(_: str) -> None:
    """Numbers are passed over unread: one may have millions of digits."""


_LENIENT = json.JSONDecoder(parse_int=_no_number, parse_float=_no_number)
# Possessive, and content with an end that never comes: takes as long as the text, whatever it is.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_SPACED = {mark: re.compile(rf"[ \t\r\n]*{re.escape(mark)}[ \t\r\n]*") for mark in "{:,"}


def _not_json(why: str) -> Unreadable:
    return Unreadable(Problem("invalid_json", f"The event is not valid JSON: {why}.", None))


def _too_many_marks() -> Unreadable:
    message = (
        f"The event is too large: outside of its strings it has more than {MAX_MARKS} commas and "
        "opening brackets. Send less at once, or put the data into one string."
    )
    return Unreadable(Problem("invalid_value", message, None))


def _too_deep() -> Unreadable:
    return _not_json(f"it is nested more than {MAX_DEPTH} levels deep")


def _lone_surrogate(where: str) -> Unreadable:
    return _not_json(f"a lone surrogate (half of a UTF-16 pair) {where}")
