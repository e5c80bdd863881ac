"""Frames to packets: one stream for each lane, and a reply that knows of no other."""

from __future__ import annotations

import asyncio
import base64

import numpy as np
import pytest

from realtime.audio.fade import fade_out
from realtime.observe.metrics import Metrics
from realtime.protocol.encode import Encoder
from realtime.runtime.egress import Frame
from realtime.runtime.frame_coder import FrameCoder
from realtime.runtime.outbound import Outbound
from realtime.runtime.outlet import WireOutlet
from realtime.session.effects import PlayReply
from realtime.session.settings import AudioFormat
from tests.realtime.runtime.stand_ins import PipeTransport
from tests.realtime.wire_audio import OPUS, decode_deltas, name_of, roughness, sine

FULLBAND = AudioFormat("audio/opus", 48_000)


def play_of(request: str, lane: str = "voice", epoch: int = 0) -> PlayReply:
    return PlayReply(request, lane, epoch, f"resp_{request}", f"item_{request}", 0, 0)


def frames_of(play: PlayReply, duration_ms: float, audio_format: AudioFormat) -> list[Frame]:
    """What the egress makes of the tone."""
    tone = sine(duration_ms, audio_format.rate_hz)
    whole = audio_format.rate_hz * 40 // 1000
    return [
        Frame(
            play,
            play.epoch,
            audio_format,
            tone[at : at + whole],
            min(at + whole, len(tone)),
            is_end=at + whole >= len(tone),
        )
        for at in range(0, len(tone), whole)
    ]


def test_what_is_dropped_before_it_leaves_was_never_encoded() -> None:
    """Two frames leave, the lane is cut, the rest of the old reply is stale; then the next one."""
    old = frames_of(play_of("old"), 400, FULLBAND)
    new = frames_of(play_of("new", epoch=1), 400, FULLBAND)
    fade = Frame(old[2].play, 1, FULLBAND, fade_out(old[2].samples[:240]), old[2].total, True)
    epoch = 0

    async def main() -> list[bytes]:
        nonlocal epoch
        transport = PipeTransport()
        outbound = Outbound(
            lambda _, frame_epoch: frame_epoch >= epoch,
            Metrics(),
            on_room=lambda: None,
            on_lost=lambda *_: None,
        )
        outlet = WireOutlet(Encoder("t"), outbound)
        writing = asyncio.create_task(outbound.run(transport))
        for frame in old[:2]:
            outlet.send(frame)
        await transport.until("response.output_audio.delta", count=2)
        for frame in old[2:6]:
            outlet.send(frame)
        epoch = 1
        for frame in (fade, *new):
            outlet.send(frame)
        await transport.until("response.output_audio.delta", count=3 + len(new))
        outlet.close(1000, "")
        await writing
        return [
            base64.b64decode(event["delta"])
            for event in transport.of("response.output_audio.delta")
        ]

    sent = asyncio.run(main())
    assert len(sent) == 3 + len(new)
    untouched = FrameCoder()
    assert sent[3:] == [untouched.encode(frame) for frame in new]
    assert roughness(decode_deltas(sent, FULLBAND), 48_000) < 1.3


@pytest.mark.parametrize("audio_format", OPUS, ids=name_of)
def test_a_hold_takes_its_fade_and_goes_on(audio_format: AudioFormat) -> None:
    """A fade of 5 ms fills a packet of 20 ms; what it would hold back is not left for later."""
    rate_hz = audio_format.rate_hz
    frames = frames_of(play_of("r"), 200, audio_format)
    short = fade_out(frames[2].samples[: rate_hz * 5 // 1000])
    fade = Frame(frames[2].play, 0, audio_format, short, frames[2].total, is_end=True)
    quiet = Frame(fade.play, 0, audio_format, np.zeros(rate_hz // 25, np.float32), fade.total)
    coder = FrameCoder()
    sent = [coder.encode(frame) for frame in (*frames[:2], fade, quiet)]
    played = decode_deltas(sent, audio_format)
    assert len(played) == rate_hz * (40 + 40 + 20 + 40) // 1000
    assert roughness(played, rate_hz) < 1.3
    assert np.abs(played[rate_hz * 100 // 1000 :]).max() < 0.01


def test_replies_side_by_side_have_an_encoder_each() -> None:
    """A lane's packets are the same whether others speak at the time or not."""
    voice = frames_of(play_of("a"), 400, FULLBAND)
    others = [frames_of(play_of(f"b{n}", lane=f"side{n}"), 400, FULLBAND) for n in range(3)]
    together, alone = FrameCoder(), FrameCoder()
    mixed = [[together.encode(frame) for frame in row] for row in zip(voice, *others, strict=True)]
    assert [row[0] for row in mixed] == [alone.encode(frame) for frame in voice]
    assert [row[1] for row in mixed] == [row[2] for row in mixed]


def test_old_lanes_are_forgotten() -> None:
    coder = FrameCoder()
    for n in range(100):
        (frame,) = frames_of(play_of(f"r{n}", lane=f"lane{n}"), 30, FULLBAND)
        coder.encode(frame)
    assert len(coder._streams) == 17
