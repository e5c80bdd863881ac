"""How the requests of a socket sound: a client's configuration, with the voice that it names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from pipelines.ports import Cascade
from pipelines.types import SpeakRequest, VoiceSample
from realtime.http.reception import Refused, refuse
from realtime.http.speech.order import OrderDesk, SpeechOrder
from realtime.http.speech.refusal import error_in
from realtime.http.speech.schema import SpeechBody
from realtime.http.speech.sources import Sources
from realtime.http.speech_socket.schema import SessionConfig
from realtime.protocol.problems import Problem

TEXT_TO_COME = "-"  # an order wants a text; that of a socket is still to be written


@dataclass(frozen=True, slots=True)
class Setup:
    config: SessionConfig
    order: SpeechOrder

    @property
    def view(self) -> dict[str, Any]:
        """As the client is told of it: with every field, and a voice even where it named none."""
        voice = self.config.voice or self.order.request.voice
        return {**self.config.model_dump(exclude={"type"}), "voice": voice}

    def request(self, request_id: str) -> SpeakRequest:
        return replace(self.order.request, request_id=request_id)


class SetupDesk:
    """find, names: of uploaded voices; called in threads."""

    def __init__(
        self,
        cascade: Cascade,
        find: Callable[[str], VoiceSample | None],
        names: Callable[[], list[str]],
    ) -> None:
        self._orders = OrderDesk(cascade, find, names, Sources(_no_source, _no_source))

    async def take(self, config: SessionConfig) -> Setup:
        """Raises Refused, which names the field."""
        wanted = config.model_dump(exclude={"type", "word_timestamps"})
        body = SpeechBody.model_validate({**wanted, "input": TEXT_TO_COME})
        return Setup(config, await self._orders.take(body, request_id=""))


def problem_of(refused: Refused) -> Problem:
    """An HTTP route's refusal in the words of the socket."""
    said = error_in(refused)
    return Problem(said["code"], said["message"], said["param"])


async def _no_source(source: str, _field: str) -> NoReturn:
    """A configuration has no field for a recording."""
    raise refuse(400, "invalid_value", f"'{source[:80]}' cannot be read here.")
