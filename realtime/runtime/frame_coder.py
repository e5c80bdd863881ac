"""Frames of the egress to the bytes of one `response.output_audio.delta` each."""

from __future__ import annotations

from dataclasses import dataclass

from realtime.protocol.formats import encode_audio, is_packets, pcm_levels
from realtime.protocol.opus import OpusEncoder
from realtime.runtime.egress import Frame
from realtime.session.side import MOST_AT_ONCE

_MOST_STREAMS = MOST_AT_ONCE + 1  # the replies that may run beside the voice, and the voice


@dataclass(slots=True)
class _Stream:
    """What is encoded for one lane: a reply after another, each of which begins afresh."""

    encoder: OpusEncoder
    rate_hz: int
    request: str


class FrameCoder:
    """For one connection; frames come in the order in which they leave.

    A frame is encoded in the instant in which it leaves: what is dropped before has never been in
    the codec's state. A packet of Opus must last 10, 20, 40 or 60 ms. Whole frames of 40 ms do; a
    fade and the end of a reply are filled up with silence, by 6.5 ms at the least, which is what
    the codec would hold back. So a client decodes a little more than was said: at most 27 ms for
    each reply and each hold. Everybody else counts what was said: `Frame.total`, the time heard
    and the time to truncate at know nothing of the silence.
    """

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}  # by lane, the latest one last

    def encode(self, frame: Frame) -> bytes:
        if not is_packets(frame.format):
            return encode_audio(frame.samples, frame.format)
        encoder = self._encoder(frame)
        return encoder.encode(pcm_levels(frame.samples), frame.is_end)

    def _encoder(self, frame: Frame) -> OpusEncoder:
        lane, request, rate_hz = frame.play.lane, frame.play.request, frame.format.rate_hz
        stream = self._streams.pop(lane, None)
        if stream is None or stream.rate_hz != rate_hz:
            stream = _Stream(OpusEncoder(rate_hz), rate_hz, request)
        elif stream.request != request:
            # A client may decode every reply by itself: each can be decoded from its start.
            stream.encoder.restart()
            stream.request = request
        self._streams[lane] = stream
        if len(self._streams) > _MOST_STREAMS:
            del self._streams[next(iter(self._streams))]
        return stream.encoder
