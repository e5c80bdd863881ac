"""One input format's way from the bytes of appends to samples at the hearing rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pipelines.types import HEARING_RATE_HZ, Samples
from realtime.audio.quantise import to_float32
from realtime.audio.resample import HearingResampler
from realtime.protocol.formats import bytes_per_sample, decode_audio, is_packets
from realtime.protocol.opus import OpusDecoder
from realtime.session.settings import AudioFormat

_PORTION_MS = 100  # of a long append: what is decoded at a time, so that memory stays flat


class WireInput(Protocol):
    """The state of one stream in one format: it is replaced as a whole."""

    format: AudioFormat

    def convert(self, audio: bytes, wanted_samples: int) -> Iterator[Samples]:
        """One append to float32 at 16 kHz, in pieces. Raises BadPacket before the first.

        wanted_samples: what completes a frame. Less may be kept back until more has come.
        """
        ...

    def rest(self) -> Iterator[Samples]:
        """What is still kept back; the stream then begins anew."""
        ...


def open_input(audio_format: AudioFormat) -> WireInput:
    return PacketInput(audio_format) if is_packets(audio_format) else SampleInput(audio_format)


class SampleInput:
    """A row of samples, cut anywhere."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self.format = audio_format
        self._resampler = HearingResampler(audio_format.rate_hz, HEARING_RATE_HZ)
        self._sample_bytes = bytes_per_sample(audio_format)
        self._portion_bytes = audio_format.rate_hz * _PORTION_MS // 1000 * self._sample_bytes
        # What has come and is not heard yet, less than a frame. Samples that complete no frame
        # change nothing, and converting them alone would cost as much as a whole frame.
        self._carry = b""

    def convert(self, audio: bytes, wanted_samples: int) -> Iterator[Samples]:
        whole = self._take(audio, self._resampler.wanted(wanted_samples))
        for at in range(0, len(whole), self._portion_bytes):
            portion = decode_audio(whole[at : at + self._portion_bytes], self.format)
            yield self._resampler.process(portion)

    def rest(self) -> Iterator[Samples]:
        """All of it; half a sample at the end is none."""
        whole = self._take(b"", 0)
        self._carry = b""
        yield self._resampler.process(decode_audio(whole, self.format))
        yield self._resampler.flush()

    def _take(self, audio: bytes, wanted_samples: int) -> memoryview:
        """All whole samples so far; none while they are fewer than wanted."""
        joined = self._carry + audio if self._carry else audio
        end = len(joined) - len(joined) % self._sample_bytes
        if end < wanted_samples * self._sample_bytes:
            end = 0
        self._carry = joined[end:]
        return memoryview(joined)[:end]


class PacketInput:
    """Opus: one append is one packet.

    The decoder runs at the hearing rate, whatever clock the format names: no resampler is needed,
    and the sample count is that of the packets. Nothing is kept back, so `rest` has nothing; the
    sender's stream goes on after a commit or a clear, and so does the decoder's.
    """

    def __init__(self, audio_format: AudioFormat) -> None:
        self.format = audio_format
        self._decoder = OpusDecoder(HEARING_RATE_HZ)

    def convert(self, audio: bytes, wanted_samples: int) -> Iterator[Samples]:
        yield to_float32(self._decoder.decode(audio))

    def rest(self) -> Iterator[Samples]:
        return iter(())
