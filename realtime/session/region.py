"""A region of the machine: a state, a table of transitions, and the actions that it names."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from realtime.session.table import Cell, Ignore, Move, Reject

if TYPE_CHECKING:
    from collections.abc import Callable

    from realtime.session.context import Context

State = TypeVar("State", bound=Enum)
Signal = TypeVar("Signal", bound=Enum)


class TableViolated(AssertionError):
    """An action led where its table does not allow: a fault of the machine, never of a client."""


class Region(Generic[State, Signal]):
    """Fires signals through its table. Subclasses define the actions as methods.

    visited: every (state, signal) that was ever fired, for the coverage of the table.
    """

    def __init__(self, ctx: Context, table: dict[tuple[State, Signal], Cell], state: State) -> None:
        self.ctx = ctx
        self.state: State = state
        self.table = table
        self.visited: set[tuple[State, Signal]] = set()
        self._actions: dict[str, Callable[[Any], State]] = {
            cell.action: getattr(self, cell.action)
            for cell in table.values()
            if isinstance(cell, Move)
        }

    def fire(self, signal: Signal, cause: object = None) -> bool:
        """Take one transition. `cause` is what the action needs. False: ignored or rejected."""
        key = (self.state, signal)
        self.visited.add(key)
        match self.table[key]:
            case Ignore():
                return False
            case Reject(code):
                self.reject(code)
                return False
            case Move(action, to):
                state = self._actions[action](cause)
                if state not in to:
                    raise TableViolated(f"{key[0]} on {signal} led to {state}, not one of {to}")
                self.state = state
                return True

    def reject(self, code: str) -> None:
        """Tell the client why its event had no effect."""
        self.ctx.refuse(code, f"This is not possible now: {code}.")
