"""Where the driver's words and frames go: to the wire, or to whoever watches a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from realtime.audio.quantise import IntSamples, to_float32
from realtime.audio.resample import resample_whole
from realtime.protocol.encode import Encoder
from realtime.protocol.formats import bytes_per_sample, encode_audio
from realtime.runtime.egress import Frame
from realtime.runtime.outbound import Outbound
from realtime.session.items import Item
from realtime.session.notices import Notice
from realtime.session.settings import AudioFormat

# Well-known clients refuse messages above 8 MiB; base64 makes three bytes four.
_RETRIEVED_BYTES = 5 * 2**20
_RENDER_INLINE_BYTES = 64 * 2**10  # two seconds: below that a thread costs more than it saves


@dataclass(frozen=True, slots=True)
class Clip:
    """One part's audio as it is kept, int16 pieces, and the format to show it in."""

    pieces: tuple[IntSamples, ...]
    rate_hz: int
    format: AudioFormat


class Outlet(Protocol):
    @property
    def has_audio_room(self) -> bool:
        """Whether the socket takes audio frames as fast as they come."""
        ...

    def tell(self, notice: Notice) -> None: ...

    def tell_retrieved(self, item: Item, clips: Mapping[int, Clip]) -> None:
        """ItemRetrieved, with what is kept of the item's audio, by part."""
        ...

    def send(self, frame: Frame) -> None: ...

    def first_stale(self, lane: str) -> Frame | None:
        """Audio of a lane that was sent here, waits, and may not leave any more."""
        ...

    def close(self, code: int, reason: str) -> None: ...


class WireOutlet:
    """Encodes for one connection and queues. Order is kept, whatever the work of encoding."""

    def __init__(self, encoder: Encoder, outbound: Outbound) -> None:
        self._encoder = encoder
        self._outbound = outbound

    @property
    def has_audio_room(self) -> bool:
        return self._outbound.has_audio_room

    def tell(self, notice: Notice) -> None:
        text = self._encoder.encode(notice)
        self._outbound.put(text, len(text))

    def tell_retrieved(self, item: Item, clips: Mapping[int, Clip]) -> None:
        size_bytes = sum(piece.nbytes for clip in clips.values() for piece in clip.pieces)
        render = partial(render_retrieved, self._encoder, item, clips)
        self._outbound.put(render, size_bytes, in_thread=size_bytes > _RENDER_INLINE_BYTES)

    def send(self, frame: Frame) -> None:
        self._outbound.put_frame(frame, partial(_render_frame, self._encoder, frame))

    def first_stale(self, lane: str) -> Frame | None:
        return self._outbound.first_stale(lane)

    def close(self, code: int, reason: str) -> None:
        self._outbound.put_close(code, reason)


def _render_frame(encoder: Encoder, frame: Frame) -> str:
    play = frame.play
    return encoder.encode_audio_delta(
        play.response_id,
        play.item_id,
        play.output_index,
        play.content_index,
        encode_audio(frame.samples, frame.format),
    )


def render_retrieved(encoder: Encoder, item: Item, clips: Mapping[int, Clip]) -> str:
    """The text of `conversation.item.retrieved`; all its audio together is capped."""
    audio = dict[int, bytes]()
    left_bytes = _RETRIEVED_BYTES
    for index, clip in sorted(clips.items()):
        whole = bytes_per_sample(clip.format)
        samples = np.concatenate(clip.pieces) if clip.pieces else np.zeros(0, dtype=np.int16)
        # Cut before the conversion: what is not shown need not be resampled.
        most = left_bytes // whole * clip.rate_hz // clip.format.rate_hz
        converted = resample_whole(samples[:most], clip.rate_hz, clip.format.rate_hz)
        encoded = encode_audio(to_float32(converted), clip.format)[:left_bytes]
        audio[index] = encoded
        left_bytes -= len(encoded)
    return encoder.encode_retrieved(item, audio)
