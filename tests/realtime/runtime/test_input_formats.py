"""Every format and rate on its way to the recogniser: the same tone, and all of it."""

from __future__ import annotations

import asyncio
import base64
import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.fakes.virtual_time import run_virtual
from pipelines.types import Samples
from realtime.protocol.opus import BadPacket
from realtime.runtime.session import SessionRuntime
from realtime.runtime.shell import SessionSetup
from realtime.session.settings import AudioFormat, SessionSettings
from tests.realtime.runtime.stand_ins import PipeTransport, ScriptedCascade, append
from tests.realtime.runtime.test_ears import Head, hear
from tests.realtime.wire_audio import (
    EVERY_FORMAT,
    OPUS,
    ROWS,
    appends,
    assert_is_the_tone,
    name_of,
    odd_sizes,
    packets,
    roughness,
    sine,
    view_of,
)

HEARING_HZ = 16_000
FULLBAND = AudioFormat("audio/opus", 48_000)


@pytest.mark.parametrize("audio_format", EVERY_FORMAT, ids=name_of)
def test_a_tone_in_is_that_tone_at_the_ears(audio_format: AudioFormat) -> None:
    tone = sine(1000, audio_format.rate_hz)
    pieces = list(appends(tone, audio_format, odd_sizes(seed=audio_format.rate_hz)))
    head = hear(Head(audio_format), pieces, audio_format)
    assert len(head.heard()) == HEARING_HZ
    assert_is_the_tone(head.heard(), HEARING_HZ)
    assert [frame.position for frame in head.frames] == [512 * n for n in range(1, 32)]


@pytest.mark.parametrize("audio_format", ROWS, ids=name_of)
def test_pieces_of_one_byte_are_the_whole(audio_format: AudioFormat) -> None:
    tone = sine(150, audio_format.rate_hz)
    whole = hear(Head(audio_format), list(appends(tone, audio_format, [100_000])), audio_format)
    bytewise = hear(Head(audio_format), list(appends(tone, audio_format, [1])), audio_format)
    assert len(whole.heard()) == len(bytewise.heard()) == 2400
    assert np.allclose(whole.heard(), bytewise.heard(), atol=2 / 32_768)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(ROWS), st.integers(0, 5000), st.lists(st.integers(1, 999), min_size=1))
def test_no_sample_is_lost_or_made(audio_format: AudioFormat, count: int, sizes: list[int]) -> None:
    tone = sine(count * 1000 / audio_format.rate_hz, audio_format.rate_hz)
    head = hear(Head(audio_format), list(appends(tone, audio_format, sizes)), audio_format)
    assert head.hearing.position == math.ceil(count * HEARING_HZ / audio_format.rate_hz)


def test_what_follows_a_flush_in_mid_sound_begins_without_a_click() -> None:
    """A commit in the middle of a sound: the stream goes on behind it."""
    for audio_format in ROWS:
        head = Head(audio_format)
        for start_ms in (0.0, 100.5, 201.0, 301.5):
            tone = sine(100.5, audio_format.rate_hz, start_ms)
            hear(head, list(appends(tone, audio_format)), audio_format)
        assert head.hearing.position == 402 * 16
        assert_is_the_tone(head.heard(), HEARING_HZ)


@pytest.mark.parametrize(
    ("before", "after"),
    [pair for pair in pairwise([*ROWS, *reversed(ROWS)]) if pair[0] != pair[1]],
    ids=name_of,
)
def test_a_change_of_format_in_mid_sound_makes_no_click(
    before: AudioFormat, after: AudioFormat
) -> None:
    head = Head(before)
    change(head, [(before, sine(300.5, before.rate_hz)), (after, sine(300, after.rate_hz, 300.5))])
    assert head.hearing.position == round(600.5 * 16)
    assert_is_the_tone(head.heard(), HEARING_HZ)


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_to_packets_and_back_in_mid_sound(row: AudioFormat) -> None:
    """A codec begins from silence, so there the tone is new; it is never a step."""
    head = Head(row)
    parts = [
        (row, sine(300, row.rate_hz)),
        (FULLBAND, sine(300, 48_000, 300)),
        (row, sine(300, row.rate_hz, 600)),
    ]
    change(head, parts)
    heard = head.heard()
    assert len(heard) == 900 * 16
    assert roughness(heard, HEARING_HZ) < 1.3
    for start_ms in (0, 300, 600):
        assert_is_the_tone(heard[(start_ms + 20) * 16 : (start_ms + 290) * 16], HEARING_HZ)


def change(head: Head, parts: list[tuple[AudioFormat, Samples]]) -> None:
    async def main() -> None:
        for audio_format, samples in parts:
            for piece in appends(samples, audio_format, odd_sizes(seed=3)):
                await head.ears.hear(piece, audio_format)
        await head.ears.flush()

    asyncio.run(main())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=6), st.sampled_from(OPUS))
def test_random_packets_never_stop_the_ears(noise: list[bytes], audio_format: AudioFormat) -> None:
    async def main() -> Head:
        head = Head(audio_format)
        for packet in noise:
            try:
                await head.ears.hear(packet, audio_format)
            except BadPacket:
                continue
        start = head.hearing.position
        for packet in packets(sine(200, 48_000), 48_000):
            await head.ears.hear(packet, audio_format)
        assert head.hearing.position == start + 3200
        return head

    asyncio.run(main())


def test_streams_of_packets_side_by_side_are_as_streams_alone() -> None:
    clips = [list(packets(sine(300, 48_000, 3.7 * n), 48_000)) for n in range(4)]
    alone = [hear(Head(FULLBAND), clip, FULLBAND) for clip in clips]
    heads = [Head(FULLBAND) for _ in clips]

    async def main() -> None:
        for turn in range(len(clips[0])):
            for head, clip in zip(heads, clips, strict=True):
                await head.ears.hear(clip[turn], FULLBAND)

    asyncio.run(main())
    for one, other in zip(alone, heads, strict=True):
        assert np.array_equal(one.heard(), other.heard())
        # What a frame holds is its own, not the decoder's room for the next one.
        assert np.array_equal(
            np.concatenate(one.detector.frames), np.concatenate(other.detector.frames)
        )


# ---- over the wire ---------------------------------------------------------------------------


def update(audio: dict[str, Any]) -> dict[str, Any]:
    return {"type": "session.update", "session": {"type": "realtime", "audio": audio}}


def listening_to(audio_format: AudioFormat) -> dict[str, Any]:
    return update({"input": {"format": view_of(audio_format), "turn_detection": None}})


def serve(setup: SessionSetup, *events: dict[str, Any] | str) -> tuple[PipeTransport, Samples]:
    """What a client got for its events, the last of which is a commit, and what was recognised."""

    async def main() -> tuple[PipeTransport, Samples]:
        transport, cascade = PipeTransport(), ScriptedCascade()
        running = asyncio.create_task(SessionRuntime(transport, cascade, setup).run())
        transport.client_sends(*events)
        async with asyncio.timeout(20):
            await cascade.has_heard.wait()
        transport.client_leaves()
        await running
        return transport, cascade.heard[0]

    return run_virtual(main(), limit_s=100)


COMMIT = {"type": "input_audio_buffer.commit"}
PUSHED = SessionSetup(SessionSettings(turn_detection=None), seed=1)


@pytest.mark.parametrize("audio_format", EVERY_FORMAT, ids=name_of)
def test_the_recogniser_hears_the_tone(audio_format: AudioFormat) -> None:
    tone = sine(500, audio_format.rate_hz)
    sent = [append(piece) for piece in appends(tone, audio_format, odd_sizes(seed=9))]
    transport, heard = serve(PUSHED, listening_to(audio_format), *sent, COMMIT)
    shown = transport.of("session.updated")[0]["session"]["audio"]
    assert shown["input"]["format"] == view_of(audio_format)
    assert shown["output"]["format"] == {"type": "audio/pcm", "rate": 24_000}
    assert transport.of("error") == []
    assert len(heard) == 8000
    assert_is_the_tone(heard, HEARING_HZ)


def test_the_format_changes_in_the_middle_of_speech() -> None:
    """Without a pause: each append is read as the update before it says, and it is one turn."""
    mu_law, wide = AudioFormat("audio/pcmu", 8_000), AudioFormat("audio/pcm", 48_000)
    events = list[dict[str, Any] | str]()
    start_ms = 0
    for audio_format in (AudioFormat(), mu_law, wide, AudioFormat("audio/pcm", 16_000)):
        events.append(update({"input": {"format": view_of(audio_format)}}))
        tone = sine(300, audio_format.rate_hz, start_ms)
        events += [append(piece) for piece in appends(tone, audio_format, odd_sizes(seed=5))]
        start_ms += 300
    transport, heard = serve(SessionSetup(SessionSettings(), seed=1), *events, COMMIT)
    assert len(transport.of("input_audio_buffer.speech_started")) == 1
    assert len(transport.of("input_audio_buffer.committed")) == 1
    assert len(transport.of("session.updated")) == 4
    assert transport.of("error") == []
    assert len(heard) == 1200 * 16
    assert_is_the_tone(heard, HEARING_HZ)


def test_a_bad_packet_is_told_with_its_event_id_and_the_turn_goes_on() -> None:
    good = [append(packet) for packet in packets(sine(400, 48_000), 48_000)]
    bad = {
        "type": "input_audio_buffer.append",
        "event_id": "mine_1",
        "audio": base64.b64encode(b"OggS" + bytes(60)).decode(),
    }
    transport, heard = serve(PUSHED, listening_to(FULLBAND), *good[:10], bad, *good[10:], COMMIT)
    (error,) = [event["error"] for event in transport.of("error")]
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_value")
    assert (error["param"], error["event_id"]) == ("audio", "mine_1")
    assert "one Opus packet" in error["message"] and "Ogg" in error["message"]
    assert len(heard) == 400 * 16
    assert_is_the_tone(heard, HEARING_HZ)


def test_empty_appends_are_packets_that_were_left_out() -> None:
    sent = [append(packet) for packet in packets(sine(200, 48_000), 48_000)]
    gap = [append(b"")] * 10
    transport, heard = serve(PUSHED, listening_to(FULLBAND), *gap, *sent, *gap, *sent, COMMIT)
    assert transport.of("error") == []
    assert len(heard) == (200 + 200 + 200) * 16


def test_an_items_own_audio_is_pcm_in_a_session_of_packets() -> None:
    audio = base64.b64encode(b"".join(appends(sine(500, 24_000), AudioFormat()))).decode()
    content = [{"type": "input_audio", "audio": audio}]
    item = {"id": "mine", "type": "message", "role": "user", "content": content}

    async def main() -> dict[str, Any]:
        transport = PipeTransport()
        session = SessionRuntime(transport, ScriptedCascade(), PUSHED)
        running = asyncio.create_task(session.run())
        transport.client_sends(
            listening_to(FULLBAND),
            {"type": "conversation.item.create", "item": item},
            {"type": "conversation.item.retrieve", "item_id": "mine"},
        )
        retrieved = await transport.until("conversation.item.retrieved")
        transport.client_leaves()
        await running
        return retrieved

    (part,) = run_virtual(main(), limit_s=100)["item"]["content"]
    kept = np.frombuffer(base64.b64decode(part["audio"]), "<i2").astype(np.float32) / 32_768
    assert len(kept) == 12_000
    assert_is_the_tone(kept.astype(np.float32), 24_000)
    assert json.dumps(part)
