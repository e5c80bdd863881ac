"""The events of a page's conversations, as they crossed the wire: nothing of the page is asked."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import soxr
from playwright.sync_api import Page, WebSocket

from realtime.protocol.opus import OpusDecoder
from tests.browser.sound import RATE_HZ, Samples

POLL_MS = 20

Event = dict[str, Any]


class Wire:
    """Of one page, over all its sockets and reloads. Events are in order of their arrival."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.sent: list[Event] = []
        self.received: list[Event] = []
        self.arrived_s: list[float] = []  # when, of each of the received
        self.sockets: list[WebSocket] = []
        page.on("websocket", self._watch)

    def _watch(self, socket: WebSocket) -> None:
        self.sockets.append(socket)
        socket.on("framesent", lambda frame: self.sent.append(json.loads(frame)))
        socket.on("framereceived", self._receive)

    def _receive(self, frame: str | bytes) -> None:
        self.received.append(json.loads(frame))
        self.arrived_s.append(time.monotonic())

    def of_type(self, kind: str) -> list[Event]:
        return [event for event in self.received if event["type"] == kind]

    def sent_of_type(self, kind: str) -> list[Event]:
        return [event for event in self.sent if event["type"] == kind]

    def wait(
        self,
        kind: str,
        which: Callable[[Event], bool] = lambda _: True,
        *,
        after: int = 0,
        timeout_s: float = 30,
    ) -> Event:
        """The first such event, come or coming; AssertionError if none comes in time.

        after: how many of the received events do not count.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for event in self.received[after:]:
                if event["type"] == kind and which(event):
                    return event
            self._page.wait_for_timeout(POLL_MS)
        kinds = [event["type"] for event in self.received[-20:]]
        raise AssertionError(f"no such {kind} within {timeout_s} s; the last were {kinds}")

    def wait_sent(self, kind: str, count: int = 1, *, timeout_s: float = 30) -> None:
        """Until the page has sent that many such events."""
        deadline = time.monotonic() + timeout_s
        while len(self.sent_of_type(kind)) < count:
            assert time.monotonic() < deadline, f"{kind} was not sent {count} times"
            self._page.wait_for_timeout(POLL_MS)

    def written(self, item_id: str) -> str:
        """The words of an item, as they were sent to be heard or read."""
        kinds = ("response.output_audio_transcript.delta", "response.output_text.delta")
        return "".join(
            event["delta"]
            for event in self.received
            if event["type"] in kinds and event["item_id"] == item_id
        )

    def sound(self, item_id: str) -> Samples:
        """The audio that the server sent of an item."""
        return np.concatenate([piece for _, piece in self._pieces(item_id)])

    def late_ms(self, item_id: str) -> float:
        """How far the server fell behind the pace of speech with an item, at the worst.

        Counted from the arrival of its first delta, which no player can play before.
        """
        worst, sent_ms, first_s = 0.0, 0.0, None
        for arrived_s, piece in self._pieces(item_id):
            first_s = arrived_s if first_s is None else first_s
            worst = max(worst, (arrived_s - first_s) * 1000 - sent_ms)
            sent_ms += len(piece) * 1000 / RATE_HZ
        return worst

    def _pieces(self, item_id: str) -> list[tuple[float, Samples]]:
        """Each delta's arrival in s, and its sound."""
        output = self.of_type("session.updated")[-1]["session"]["audio"]["output"]["format"]
        rate_hz = output.get("rate", RATE_HZ)
        decoder = OpusDecoder(rate_hz) if output["type"] == "audio/opus" else None
        stream = soxr.ResampleStream(rate_hz, RATE_HZ, 1, dtype="float32")
        pieces: list[tuple[float, Samples]] = []
        for arrived_s, event in zip(self.arrived_s, self.received, strict=True):
            if event["type"] != "response.output_audio.delta" or event["item_id"] != item_id:
                continue
            packet = base64.b64decode(event["delta"])
            levels = decoder.decode(packet) if decoder else np.frombuffer(packet, "<i2")
            pcm = levels.astype(np.float32) / 32_768
            pieces.append((arrived_s, stream.resample_chunk(pcm)))
        return pieces
