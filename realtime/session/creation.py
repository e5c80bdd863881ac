"""Why and how a response is made, and what makes one due."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from realtime.session.reply_request import STANDARD

if TYPE_CHECKING:
    from realtime.session.reply import Reply
    from realtime.session.settings import ResponseOptions
    from realtime.session.turn import Turn


class Debt(IntEnum):
    """What the user is owed when the turn under way comes to nothing; the larger one counts."""

    NOTHING = 0
    CONTINUATION = 1  # the rest of a reply that was cut short
    ANSWER = 2  # a committed turn has had no answer that could be heard


@dataclass(frozen=True, slots=True)
class Failure:
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Creation:
    """Why and how a response is made.

    draft: outputs that exist already. failure: what makes it fail at once.
    closing: a system message for this reply alone. waits_for: items whose text is due first.
    text: what is to be said, word for word.
    """

    options: ResponseOptions = STANDARD
    turn: Turn | None = None
    draft: Reply | None = None
    failure: Failure | None = None
    closing: str | None = None
    text: str | None = None
    waits_for: frozenset[str] = frozenset()
