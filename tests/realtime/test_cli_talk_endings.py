"""How `talk` tells that a server ended the conversation: once, and with what it said of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from realtime.cli import main
from realtime.commands import talk
from realtime.commands.wire_client import ConversationEnded

FULL = {
    "type": "error",
    "error": {
        "type": "server_error",
        "code": "server_full",
        "message": "The server is full. Wait.",
    },
}
EXPIRED = {
    "type": "error",
    "error": {"type": "server_error", "code": "session_expired", "message": "An hour is over."},
}


class Client:
    """A connection that gives these events and is then closed; takes: what may be sent before."""

    def __init__(self, events: list[dict[str, Any]], takes: int) -> None:
        self._events = events
        self._takes = takes

    @staticmethod
    def now_ms() -> float:
        return 0.0

    async def send(self, type_: str, **fields: Any) -> None:
        if not self._takes:
            raise ConversationEnded("the server ended the conversation: 1013 The serv")
        self._takes -= 1

    async def received(self) -> AsyncIterator[tuple[float, dict[str, Any]]]:
        for event in self._events:
            yield 0.0, event
        raise ConversationEnded("the server ended the conversation: 1013 The serv")

    async def feed_silence(self, is_over: Any, limit_ms: int) -> None:
        await asyncio.Event().wait()


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):  # type: ignore[no-untyped-def]
    def run(events: list[dict[str, Any]], takes: int) -> tuple[int, str, str]:
        @asynccontextmanager
        async def open_client(*_: object) -> AsyncIterator[Client]:
            yield Client(events, takes)

        monkeypatch.setattr(talk, "open_client", open_client)
        code = main(["talk", "--text", "hello", "--out", str(tmp_path / "heard.wav")])
        captured = capsys.readouterr()
        assert not (tmp_path / "heard.wav").exists() and "written" not in captured.out
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize("takes", [0, 1, 9])
def test_a_refusal_is_told_once_and_whole(said: Any, takes: int) -> None:
    """Also where the connection is closed before anything could be sent."""
    code, out, err = said([FULL], takes)
    assert (code, err) == (1, "parley: server_full: The server is full. Wait.\n")
    assert "server_full" not in out


def test_an_ending_that_was_explained_is_not_explained_again(said: Any) -> None:
    code, out, err = said([{"type": "session.created"}, EXPIRED], 9)
    assert code == 1 and "error: session_expired: An hour is over.\n" in out
    assert err == "parley: the server ended the conversation\n"


def test_an_ending_without_an_explanation_tells_the_code(said: Any) -> None:
    code, _, err = said([{"type": "session.created"}], 9)
    assert (code, err) == (1, "parley: the server ended the conversation: 1013 The serv\n")
