"""Notices and audio to server events, one JSON text each."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Mapping
from typing import Any

from realtime.protocol.item_view import base64_text, item_view
from realtime.protocol.json_text import compact
from realtime.protocol.notice_view import detail_view, notice_view
from realtime.session.items import Item
from realtime.session.notices import Detail, Notice

_STEM_BYTES = 6  # enough to tell the events of two connections apart in one log


class Encoder:
    """The server's side of one connection: it numbers the events that it encodes.

    stem: what the connection's event ids have in common; random unless a test or a replay wants
        the same ids again.
    """

    def __init__(self, stem: str | None = None) -> None:
        self._stem = secrets.token_hex(_STEM_BYTES) if stem is None else stem
        self._numbers = itertools.count(1)  # atomic: large events are encoded in threads

    def encode(self, notice: Notice, parley: Mapping[str, Any] | None = None) -> str:
        """parley: what stands under that key, for a client that has asked for it."""
        body = notice_view(notice)
        return self._event(body if parley is None else {**body, "parley": parley})

    def encode_detail(self, detail: Detail) -> str:
        return self._event(detail_view(detail))

    def encode_audio_delta(
        self,
        response_id: str,
        item_id: str,
        output_index: int,
        content_index: int,
        audio: bytes,
    ) -> str:
        """The most frequent event by far, so it is written without a detour.

        audio: bytes in the response's output format, whole samples or one packet.
        """
        return (
            f'{{"type":"response.output_audio.delta","event_id":"{self._next_id()}",'
            f'"response_id":{compact(response_id)},"item_id":{compact(item_id)},'
            f'"output_index":{output_index},"content_index":{content_index},'
            f'"delta":"{base64_text(audio)}"}}'
        )

    def encode_retrieved(self, item: Item, audio: Mapping[int, bytes]) -> str:
        """conversation.item.retrieved with the audio of its parts, by part index.

        audio: input parts in the session's input format, output parts in the output format; as
            recordings, so PCM16 at 24 kHz where the format is one of packets.
        """
        view = item_view(item, audio)
        return self._event({"type": "conversation.item.retrieved", "item": view})

    def _event(self, body: dict[str, Any]) -> str:
        return compact({"event_id": self._next_id(), **body})

    def _next_id(self) -> str:
        return f"event_{self._stem}_{next(self._numbers)}"
