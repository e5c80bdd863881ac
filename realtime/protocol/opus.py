"""Opus (RFC 6716) on the wire: one packet per event, mono, without a container.

Both classes hold the state of one stream and are used by one task at a time. Samples pass as
16-bit ones: they are finite and in range whatever a packet holds.
"""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from realtime.protocol.opus_library import load_opuslib

Int16 = npt.NDArray[np.int16]

RATES_HZ = (48_000, 24_000, 16_000, 12_000, 8_000)  # the clocks of encoder and decoder
LONGEST_PACKET_MS = 120
# 48 frames of 1275 bytes and their lengths (RFC 6716, 3.2.5) are less; padding may stand for more.
LARGEST_PACKET_BYTES = 64 * 2**10

# What a decoder guesses of a sound that is missing is no longer that sound.
_CONCEALED_MS = 100

# Of 10: a packet then takes half the time of the default, 9.
_COMPLEXITY = 5
_ENCODED_BYTES = 4000  # the room that libopus recommends for any packet
# What SILK can encode, so that a speech stream never leaves it for a frame.
_FRAMES_MS = (10, 20, 40, 60)


class BadPacket(ValueError):
    """Bytes that are no Opus packet. The message is fit for the client who sent them."""


class OpusDecoder:
    """Packets of one stream to int16 samples at `rate_hz`, whatever rate they were made from."""

    def __init__(self, rate_hz: int) -> None:
        opuslib = load_opuslib()
        self._decoder = opuslib.Decoder(rate_hz, 1)  # libopus mixes stereo packets down
        self._decode = opuslib.api.decoder.libopus_decode
        self._room: Int16 = np.zeros(rate_hz * LONGEST_PACKET_MS // 1000, dtype=np.int16)
        self._pointer = self._room.ctypes.data_as(opuslib.api.c_int16_pointer)
        self._latest_samples = 0
        self._concealable = self._most_concealed = rate_hz * _CONCEALED_MS // 1000

    def decode(self, packet: bytes) -> Int16:
        """int16 [n], exactly as long as the packet's audio, 2.5 to 120 ms. Raises BadPacket.

        No bytes stand for one packet that the sender left out in a pause, as long as the one
        before it: the decoder fills 100 ms of a gap with what sounds like the sound before, and
        silence fills the rest. After a bad packet the stream is where it was.
        """
        if not packet:
            return self._conceal()
        if len(packet) > LARGEST_PACKET_BYTES:
            raise BadPacket(_explain(packet))
        count = self._decode(
            self._decoder.decoder_state, packet, len(packet), self._pointer, len(self._room), 0
        )
        if count < 0:
            raise BadPacket(_explain(packet))
        self._latest_samples = count
        self._concealable = self._most_concealed
        return self._room[:count].copy()

    def _conceal(self) -> Int16:
        count = self._latest_samples
        if not count or self._concealable <= 0:
            return np.zeros(count, dtype=np.int16)
        self._concealable -= count
        self._decode(self._decoder.decoder_state, None, 0, self._pointer, count, 0)
        return self._room[:count].copy()


class OpusEncoder:
    """Samples at `rate_hz` to packets. What is heard lags `lookahead_samples` behind them."""

    def __init__(self, rate_hz: int) -> None:
        opuslib = load_opuslib()
        self._encoder = opuslib.Encoder(rate_hz, 1, "voip")
        self._encoder.complexity = _COMPLEXITY
        self._encode = opuslib.api.encoder.libopus_encode
        self._c_int16_pointer = opuslib.api.c_int16_pointer
        self._packet = ctypes.create_string_buffer(_ENCODED_BYTES)
        self._frames = tuple(rate_hz * frame_ms // 1000 for frame_ms in _FRAMES_MS)
        self.lookahead_samples = int(self._encoder.lookahead)

    def restart(self) -> None:
        """The next packet can be decoded without those before it."""
        self._encoder.reset_state()

    def encode(self, samples: Int16, is_end: bool = False) -> bytes:
        """int16 [n], at most 40 ms, to one packet, filled up with silence to 10, 20, 40 or 60 ms.

        is_end: a silence follows; the packet then has room for the samples that the codec would
        hold back for the next one.
        """
        wanted = len(samples) + (self.lookahead_samples if is_end else 0)
        frame = next(frame for frame in self._frames if frame >= wanted)
        if frame > len(samples):
            samples = np.concatenate([samples, np.zeros(frame - len(samples), dtype=np.int16)])
        size_bytes = self._encode(
            self._encoder.encoder_state,
            samples.ctypes.data_as(self._c_int16_pointer),
            frame,
            self._packet,
            _ENCODED_BYTES,
        )
        if size_bytes < 0:
            raise RuntimeError(f"libopus cannot encode {frame} samples: error {size_bytes}")
        return ctypes.string_at(self._packet, size_bytes)


def _explain(packet: bytes) -> str:
    hint = ""
    if packet.startswith(b"Ogg"):
        hint = " It begins like an Ogg file: send the packets inside it."
    return (
        "Invalid 'audio'. Expected one Opus packet of at most "
        f"{LONGEST_PACKET_MS} ms, without a container, in each event, but these "
        f"{len(packet)} bytes are none.{hint}"
    )
