"""Encoded speech in its container, packet by packet, through FFmpeg."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.packet import Packet

from realtime.audio.quantise import FloatSamples, to_int16

# What all three lossy codecs encode, and at which their frames, and with them every delay and
# every rounding of a length, are the shortest: 20 to 24 ms.
_LOSSY_RATE_HZ = 48_000


@dataclass(frozen=True, slots=True)
class _Codec:
    """How one format is made.

    rate_hz: of the encoded sound; None: the voice's own.
    run_in_packets, lead_samples: a lossy encoder begins with packets that only fill the decoder's
        overlap. A container that can say so has them cut off; one that cannot starts behind them,
        and silence of lead_samples makes them whole. So the sound begins where it should, and its
        first frame rises out of silence.
    least_samples: silence makes a shorter sound this long; readers refuse a file without frames,
        and one without a container unless enough of them (2 of mp3, 3 of aac) prove what it is.
    frames_per_s: how long one frame is, where the encoder lets one choose.
    """

    container: str
    encoder: str
    sample_format: str
    rate_hz: int | None = None
    bit_rate: int | None = None  # bits per second
    run_in_packets: int = 0
    lead_samples: int = 0
    least_samples: int = 0
    frames_per_s: int | None = None
    encoder_options: Mapping[str, str] = field(default_factory=dict[str, str])
    container_options: Mapping[str, str] = field(default_factory=dict[str, str])


_OPUS = _Codec(
    container="ogg",
    encoder="libopus",
    sample_format="flt",
    rate_hz=_LOSSY_RATE_HZ,
    bit_rate=64_000,  # transparent for one voice
    least_samples=960,
    encoder_options={"application": "audio", "frame_duration": "20"},
    container_options={"page_duration": "20000"},  # microseconds: every packet leaves at once
)
_AAC = _Codec(
    container="adts",
    encoder="aac",
    sample_format="fltp",
    rate_hz=_LOSSY_RATE_HZ,
    bit_rate=96_000,  # transparent for one voice
    run_in_packets=1,
    least_samples=3 * 1024,
    # At this bit rate its errors are a third of the default coder's, from the first frame on.
    encoder_options={"aac_coder": "fast"},
)
_FLAC = _Codec(
    container="flac",
    encoder="flac",
    sample_format="s16",
    frames_per_s=40,  # shorter ones cost more in their headers than they bring forward
    container_options={"metadata_header_padding": "0"},  # there are no tags to be filled in later
)
# A file tells its exact length and its run-in in a first frame, which is written last.
_MP3_FILE = _Codec(
    container="mp3",
    encoder="libmp3lame",
    sample_format="fltp",
    rate_hz=_LOSSY_RATE_HZ,
    bit_rate=96_000,  # transparent for one voice
    least_samples=1152,
    container_options={"write_xing": "1", "id3v2_version": "0"},
)
_MP3_STREAM = replace(
    _MP3_FILE,
    run_in_packets=1,
    lead_samples=1152 - 1105,  # a frame, less the delay of LAME (576) and of a decoder (529)
    least_samples=2 * 1152,
    encoder_options={"reservoir": "0"},  # no frame leans on one that was left out
    container_options={"write_xing": "0", "id3v2_version": "0"},
)

_STREAMED: Mapping[str, _Codec] = MappingProxyType(
    {"mp3": _MP3_STREAM, "opus": _OPUS, "aac": _AAC, "flac": _FLAC}
)
_WHOLE: Mapping[str, _Codec] = MappingProxyType({**_STREAMED, "mp3": _MP3_FILE})


def encoded_rate_hz(format: str, voice_hz: int) -> int:
    """The rate of the samples that a `CodecWriter` of this format wants."""
    return _STREAMED[format].rate_hz or voice_hz


class _Outbox:
    """Where a container's bytes go: it cannot turn back, so nothing waits to be corrected."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data


class CodecWriter:
    """One encoded file of mono speech: mp3, opus, aac or flac.

    Streamed, every packet leaves as soon as it is made; otherwise all leaves with `finish`, after
    the lengths in the header have been put right.
    """

    def __init__(self, format: str, rate_hz: int, is_streamed: bool) -> None:
        self._codec = (_STREAMED if is_streamed else _WHOLE)[format]
        self._rate_hz = rate_hz
        self._outbox = _Outbox()
        self._file = None if is_streamed else io.BytesIO()
        self._container = av.open(
            self._outbox if self._file is None else self._file,
            "w",
            format=self._codec.container,
            options=dict(self._codec.container_options),
        )
        self._stream = self._open_stream()
        self._made_packets = 0
        self._fed_samples = 0
        self._container.start_encoding()
        self._feed(np.zeros(self._codec.lead_samples, dtype=np.float32))

    def write(self, samples: FloatSamples) -> bytes:
        """float32 [n] within full scale to the bytes that are ready."""
        self._feed(samples)
        return self._outbox.take()

    def finish(self) -> bytes:
        """The last bytes; nothing may be written after it."""
        sound_samples = self._fed_samples - self._codec.lead_samples
        missing = max(0, self._codec.least_samples - sound_samples)
        self._feed(np.zeros(missing, dtype=np.float32))
        if self._fed_samples:
            self._send(self._stream.encode(None))
        self._container.close()
        return self._outbox.take() if self._file is None else self._file.getvalue()

    def _open_stream(self) -> AudioStream:
        options = dict(self._codec.encoder_options)
        if self._codec.frames_per_s is not None:
            options["frame_size"] = str(self._rate_hz // self._codec.frames_per_s)
        stream = self._container.add_stream(
            self._codec.encoder, rate=self._rate_hz, options=options
        )
        assert isinstance(stream, AudioStream)
        stream.layout = "mono"
        stream.format = self._codec.sample_format
        if self._codec.bit_rate is not None:
            stream.bit_rate = self._codec.bit_rate
        return stream

    def _feed(self, samples: FloatSamples) -> None:
        if len(samples) == 0:
            return
        frame = self._make_frame(samples)
        frame.sample_rate = self._rate_hz
        frame.pts = self._fed_samples
        self._fed_samples += len(samples)
        self._send(self._stream.encode(frame))

    def _make_frame(self, samples: FloatSamples) -> AudioFrame:
        row = np.ascontiguousarray(samples)[None]
        if self._codec.sample_format == "s16":
            return AudioFrame.from_ndarray(to_int16(row), format="s16", layout="mono")
        return AudioFrame.from_ndarray(row, format=self._codec.sample_format, layout="mono")

    def _send(self, packets: Iterable[Packet]) -> None:
        for packet in packets:
            self._made_packets += 1
            if self._is_sound(self._made_packets - 1):
                self._container.mux(packet)

    def _is_sound(self, index: int) -> bool:
        """Whether the packet is more than the run-in, or the encoder's padding behind the end."""
        run_in = self._codec.run_in_packets
        if not run_in:
            return True
        sound_samples = self._fed_samples - self._codec.lead_samples
        begins_at = (index - run_in) * self._stream.codec_context.frame_size
        return 0 <= begins_at < sound_samples
