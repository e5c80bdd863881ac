"""One request of the socket of speech, in the moments in which two things happen at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from pipelines.types import SpeakRequest, SpeechDelta, StageError
from realtime.http.speech_socket.request import SpokenRequest
from realtime.http.speech_socket.schema import SessionConfig
from realtime.http.speech_socket.script import Script
from realtime.http.speech_socket.setup import SetupDesk
from realtime.http.speech_socket.wire import SpeechWire
from tests.realtime.runtime.stand_ins import ScriptedCascade, ScriptedSpeech


class Failing(ScriptedSpeech):
    """Never says a word; `fails` makes a push raise."""

    def __init__(self, cascade: ScriptedCascade) -> None:
        super().__init__(cascade)
        self.fails = asyncio.Event()
        self.is_pushed = asyncio.Event()

    async def push(self, item: str) -> None:
        self.is_pushed.set()
        await self.fails.wait()
        raise StageError("tts_failed", "as it was told")

    async def _speak(self) -> AsyncIterator[SpeechDelta]:
        await asyncio.Event().wait()
        yield  # type: ignore[misc]


class FailingCascade(ScriptedCascade):
    def speak(self, request: SpeakRequest) -> ScriptedSpeech:
        self.speeches.append(Failing(self))
        return self.speeches[-1]


class Told:
    """Stands in for a wire."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    async def tell(self, kind: str, **_fields: Any) -> None:
        self.kinds.append(kind)

    async def tell_problem(self, _problem: object) -> None:
        self.kinds.append("error")


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_request_that_fails_while_it_is_cancelled_stays_cancelled(is_cancelled: bool) -> None:
    async def run() -> None:
        cascade, wire = FailingCascade(), Told()
        setup = await SetupDesk(cascade, lambda _name: None, list).take(SessionConfig())
        request = SpokenRequest(setup, cast("SpeechWire", wire), Script())
        running = asyncio.create_task(request.run(cascade, "speech-1", "one"))
        while not cascade.speeches:
            await asyncio.sleep(0)
        speech = cast("Failing", cascade.speeches[0])
        await speech.is_pushed.wait()
        speech.fails.set()
        if is_cancelled:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        else:
            await running
        assert cascade.active == 0
        assert wire.kinds == ([] if is_cancelled else ["error", "audio.done"])

    asyncio.run(run())
