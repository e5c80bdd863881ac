"""Where the driver's words and frames go: to the wire, or to whoever watches a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from realtime.audio.quantise import IntSamples, to_float32
from realtime.audio.resample import resample_whole
from realtime.protocol.encode import Encoder
from realtime.protocol.formats import bytes_per_sample, encode_audio, recording_format
from realtime.protocol.json_text import MOST_BYTES_PER_CHARACTER
from realtime.runtime.egress import Frame
from realtime.runtime.frame_coder import FrameCoder
from realtime.runtime.outbound import Outbound
from realtime.session.effects import TellConversation
from realtime.session.items import Item
from realtime.session.notices import Detail, ItemAdded, ItemDone, Notice, SessionCreated
from realtime.session.settings import AudioFormat

# Well-known clients refuse messages above 8 MiB; base64 makes three bytes four.
_RETRIEVED_BYTES = 5 * 2**20
_RENDER_INLINE_BYTES = 64 * 2**10  # two seconds: below that a thread costs more than it saves


@dataclass(frozen=True, slots=True)
class Clip:
    """One part's audio as it is kept, int16 pieces, and the format of its side of the session."""

    pieces: tuple[IntSamples, ...]
    rate_hz: int
    format: AudioFormat


class Outlet(Protocol):
    @property
    def has_audio_room(self) -> bool:
        """Whether the socket takes audio frames as fast as they come."""
        ...

    def tell(self, notice: Notice) -> None: ...

    def tell_detail(self, detail: Detail) -> None:
        """For a client that asks for details; any other is not told."""
        ...

    def tell_conversation(self, told: TellConversation) -> None:
        """Every item as added and done."""
        ...

    def tell_retrieved(self, item: Item, clips: Mapping[int, Clip]) -> None:
        """ItemRetrieved, with what is kept of the item's audio, by part."""
        ...

    def send(self, frame: Frame) -> None: ...

    def first_stale(self, lane: str) -> Frame | None:
        """Audio of a lane that was sent here, waits, and may not leave any more."""
        ...

    def close(self, code: int, reason: str) -> None: ...


class WireOutlet:
    """Encodes for one connection and queues. Order is kept, whatever the work of encoding.

    greeting: what stands in `session.created` under `parley`. wants_details: whether the client
    asks for more than the standard events.
    """

    def __init__(
        self,
        encoder: Encoder,
        outbound: Outbound,
        greeting: Mapping[str, Any] | None = None,
        wants_details: bool = False,
    ) -> None:
        self._encoder = encoder
        self._outbound = outbound
        self._greeting = greeting
        self._wants_details = wants_details
        self._coder = FrameCoder()

    @property
    def has_audio_room(self) -> bool:
        return self._outbound.has_audio_room

    def tell(self, notice: Notice) -> None:
        extra = self._greeting if isinstance(notice, SessionCreated) else None
        text = self._encoder.encode(notice, extra)
        self._outbound.put(text, len(text))

    def tell_detail(self, detail: Detail) -> None:
        if self._wants_details:
            text = self._encoder.encode_detail(detail)
            self._outbound.put(text, len(text))

    def tell_conversation(self, told: TellConversation) -> None:
        notices = (form(*entry) for entry in told.items for form in (ItemAdded, ItemDone))
        self._outbound.put_series(self._encoder.encode(notice) for notice in notices)

    def tell_retrieved(self, item: Item, clips: Mapping[int, Clip]) -> None:
        size_bytes = sum(piece.nbytes for clip in clips.values() for piece in clip.pieces)
        render = partial(render_retrieved, self._encoder, item, clips)
        self._outbound.put(render, size_bytes, in_thread=size_bytes > _RENDER_INLINE_BYTES)

    def send(self, frame: Frame) -> None:
        self._outbound.put_frame(frame, partial(self._render, frame))

    def first_stale(self, lane: str) -> Frame | None:
        return self._outbound.first_stale(lane)

    def close(self, code: int, reason: str) -> None:
        self._outbound.put_close(code, reason)

    def _render(self, frame: Frame) -> str:
        play = frame.play
        return self._encoder.encode_audio_delta(
            play.response_id,
            play.item_id,
            play.output_index,
            play.content_index,
            self._coder.encode(frame),
        )


def render_retrieved(encoder: Encoder, item: Item, clips: Mapping[int, Clip]) -> str:
    """The text of `conversation.item.retrieved`; all its audio together is capped.

    `audio` is in the session's format, input or output; where that is one of packets, which make
    no recording when they are joined, it is PCM16 at 24 kHz.
    """
    audio = dict[int, bytes]()
    text_bytes = item.size_characters * MOST_BYTES_PER_CHARACTER
    left_bytes = max(0, _RETRIEVED_BYTES - text_bytes * 3 // 4)
    for index, clip in sorted(clips.items()):
        shown_in = recording_format(clip.format)
        whole = bytes_per_sample(shown_in)
        samples = np.concatenate(clip.pieces) if clip.pieces else np.zeros(0, dtype=np.int16)
        # Cut before the conversion: what is not shown need not be resampled.
        most = left_bytes // whole * clip.rate_hz // shown_in.rate_hz
        converted = resample_whole(samples[:most], clip.rate_hz, shown_in.rate_hz)
        encoded = encode_audio(to_float32(converted), shown_in)[:left_bytes]
        audio[index] = encoded
        left_bytes -= len(encoded)
    return encoder.encode_retrieved(item, audio)
