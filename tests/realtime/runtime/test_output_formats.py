"""Every format and rate on its way from the voice to what a client decodes."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from pipelines.fakes.virtual_time import run_virtual
from pipelines.types import Finished, FinishReason, ReplyOutput, Samples, SpeechDelta, TextDelta
from realtime.runtime.session import SessionRuntime
from realtime.runtime.shell import SessionSetup
from realtime.session.settings import AudioFormat, SessionSettings
from tests.realtime.runtime.stand_ins import PipeTransport, ScriptedCascade, append
from tests.realtime.wire_audio import (
    EVERY_FORMAT,
    OPUS,
    ROWS,
    appends,
    assert_is_the_tone,
    decode_deltas,
    level_db,
    name_of,
    roughness,
    sine,
    view_of,
)

Client = Callable[[PipeTransport], Coroutine[Any, Any, None]]
PUSHED = SessionSetup(SessionSettings(turn_detection=None), seed=1)
VOICE_HZ = 22_050
FULLBAND = AudioFormat("audio/opus", 48_000)
PADDING_MS = 27  # the most that the last packet of a reply is filled up by
CODED = 1.5  # how much steeper than the tone its beginning may be at the bit rate of speech


def spoken(duration_ms: float, pieces: int = 3) -> list[ReplyOutput]:
    """The tone in a voice's own rate, in unequal pieces."""
    tone = sine(duration_ms, VOICE_HZ)
    borders = [len(tone) * n * n // pieces**2 for n in range(pieces + 1)]
    deltas = [
        SpeechDelta(tone[a:b], VOICE_HZ, 2 * n + 2)
        for n, (a, b) in enumerate(zip(borders, borders[1:], strict=False))
    ]
    return [TextDelta("ab" * pieces), *deltas, Finished(FinishReason.STOP)]


def serve(cascade: ScriptedCascade, client: Client, setup: SessionSetup = PUSHED) -> PipeTransport:
    async def main() -> PipeTransport:
        transport = PipeTransport()
        running = asyncio.create_task(SessionRuntime(transport, cascade, setup).run())
        await client(transport)
        transport.client_leaves()
        await running
        return transport

    return run_virtual(main(), limit_s=600)


def update(output: AudioFormat, given: AudioFormat | None = None) -> dict[str, Any]:
    audio: dict[str, Any] = {"output": {"format": view_of(output)}}
    if given is not None:
        audio["input"] = {"format": view_of(given), "turn_detection": None}
    return {"type": "session.update", "session": {"type": "realtime", "audio": audio}}


def deltas_of(transport: PipeTransport, response_id: str) -> list[bytes]:
    return [
        base64.b64decode(event["delta"])
        for event in transport.of("response.output_audio.delta")
        if event["response_id"] == response_id
    ]


def response(transport: PipeTransport, place: int = 0) -> dict[str, Any]:
    return transport.of("response.created")[place]["response"]


def retrieved(event: dict[str, Any], audio_format: AudioFormat) -> Samples:
    (part,) = event["item"]["content"]
    return decode_deltas([base64.b64decode(part["audio"])], audio_format)


@pytest.mark.parametrize("duration_ms", [333, 1000])
@pytest.mark.parametrize("audio_format", EVERY_FORMAT, ids=name_of)
def test_the_voices_tone_is_the_tone_at_the_client(
    audio_format: AudioFormat, duration_ms: int
) -> None:
    async def client(transport: PipeTransport) -> None:
        transport.client_sends(update(audio_format), {"type": "response.create"})
        done = await transport.until("response.done")
        item = done["response"]["output"][0]["id"]
        transport.client_sends({"type": "conversation.item.retrieve", "item_id": item})
        await transport.until("conversation.item.retrieved")

    transport = serve(ScriptedCascade(reply=spoken(duration_ms)), client)
    rate_hz = audio_format.rate_hz
    made = response(transport)
    assert made["audio"]["output"]["format"] == view_of(audio_format)
    played = decode_deltas(deltas_of(transport, made["id"]), audio_format)
    said = round(round(VOICE_HZ * duration_ms / 1000) * rate_hz / VOICE_HZ)
    if audio_format in OPUS:
        assert said < len(played) <= said + rate_hz * PADDING_MS // 1000
        assert np.abs(played[said + rate_hz * 12 // 1000 :]).max(initial=0.0) < 0.1
    else:
        assert len(played) == said
    assert_is_the_tone(played[:said], rate_hz, CODED if audio_format in OPUS else 1.3)
    # What is kept is what was said, without what a packet was filled up with.
    shown = AudioFormat() if audio_format in OPUS else audio_format
    kept = retrieved(transport.of("conversation.item.retrieved")[0], shown)
    assert abs(len(kept) - said * shown.rate_hz / rate_hz) <= 0.5
    assert_is_the_tone(kept, shown.rate_hz)


@pytest.mark.parametrize(
    ("given", "output"),
    [
        (AudioFormat("audio/pcmu", 8_000), FULLBAND),
        (FULLBAND, AudioFormat("audio/pcm", 16_000)),
        (AudioFormat("audio/opus", 16_000), AudioFormat("audio/opus", 24_000)),
        (AudioFormat("audio/pcm", 48_000), AudioFormat("audio/pcma", 8_000)),
    ],
    ids=name_of,
)
def test_both_directions_differ(given: AudioFormat, output: AudioFormat) -> None:
    """Also in what is shown of the items: each side's audio in the format of its side."""

    async def client(transport: PipeTransport) -> None:
        transport.client_sends(update(output, given))
        for piece in appends(sine(600, given.rate_hz), given):
            transport.client_sends(append(piece))
        transport.client_sends({"type": "input_audio_buffer.commit"}, {"type": "response.create"})
        done = await transport.until("response.done")
        await transport.until("input_audio_buffer.committed")
        user = transport.of("input_audio_buffer.committed")[0]["item_id"]
        for item in (user, done["response"]["output"][0]["id"]):
            transport.client_sends({"type": "conversation.item.retrieve", "item_id": item})
        await transport.until("conversation.item.retrieved", count=2)

    transport = serve(ScriptedCascade(reply=spoken(500)), client)
    shown = transport.of("session.updated")[0]["session"]["audio"]
    assert shown["input"]["format"] == view_of(given)
    assert shown["output"]["format"] == view_of(output)
    assert transport.of("error") == []
    played = decode_deltas(deltas_of(transport, response(transport)["id"]), output)
    assert_is_the_tone(played[: output.rate_hz // 2], output.rate_hz, CODED)
    for event, side, seconds in zip(
        transport.of("conversation.item.retrieved"), (given, output), (0.6, 0.5), strict=True
    ):
        shown_in = AudioFormat() if side in OPUS else side
        kept = retrieved(event, shown_in)
        assert len(kept) == seconds * shown_in.rate_hz
        assert_is_the_tone(kept[:-100], shown_in.rate_hz)  # which was cut off in mid-sound


def test_a_reply_keeps_its_format_and_the_next_one_has_the_new_one() -> None:
    async def client(transport: PipeTransport) -> None:
        transport.client_sends(update(ROWS[3]), {"type": "response.create"})
        await transport.until("response.output_audio.delta", count=5)
        transport.client_sends(update(FULLBAND))
        await transport.until("response.done")
        transport.client_sends({"type": "response.create"})
        await transport.until("response.done", count=2)

    transport = serve(ScriptedCascade(reply=spoken(1000)), client)
    for place, audio_format in enumerate((ROWS[3], FULLBAND)):
        made = response(transport, place)
        assert made["audio"]["output"]["format"] == view_of(audio_format)
        played = decode_deltas(deltas_of(transport, made["id"]), audio_format)
        assert_is_the_tone(played[: audio_format.rate_hz], audio_format.rate_hz, CODED)


@pytest.mark.parametrize("after_ms", range(0, 700, 70))
def test_the_format_changes_around_the_end_of_a_turn(after_ms: int) -> None:
    """Whether the update meets a draft, a reply or neither: what is declared is what is sent."""

    async def client(transport: PipeTransport) -> None:
        speech = np.concatenate([sine(600, 24_000), np.zeros(24 * 1400, np.float32)])
        pieces = list(appends(speech, AudioFormat(), [960]))
        for place, piece in enumerate(pieces):
            if place == (600 + after_ms) // 20:
                transport.client_sends(update(FULLBAND))
            transport.client_sends(append(piece))
            await asyncio.sleep(0.02)
        await transport.until("response.done")

    cascade = ScriptedCascade(reply=spoken(400))
    transport = serve(cascade, client, SessionSetup(SessionSettings(), seed=1))
    made = response(transport)
    declared = made["audio"]["output"]["format"]
    audio_format = AudioFormat(declared["type"], declared["rate"])
    played = decode_deltas(deltas_of(transport, made["id"]), audio_format)
    assert_is_the_tone(played[: audio_format.rate_hz * 4 // 10], audio_format.rate_hz, CODED)


def test_a_response_may_have_a_format_of_its_own() -> None:
    wanted = {"audio": {"output": {"format": {"type": "audio/opus"}}}}

    async def client(transport: PipeTransport) -> None:
        transport.client_sends({"type": "response.create", "response": wanted})
        await transport.until("response.done")

    transport = serve(ScriptedCascade(reply=spoken(400)), client)
    assert response(transport)["audio"]["output"]["format"] == view_of(FULLBAND)
    played = decode_deltas(deltas_of(transport, response(transport)["id"]), FULLBAND)
    assert_is_the_tone(played[: 400 * 48], 48_000, CODED)


def test_an_interrupted_reply_ends_softly_and_the_next_one_begins_as_any() -> None:
    """Held, faded, cut; and the same reply once more: one decoder hears it all."""

    async def client(transport: PipeTransport) -> None:
        transport.client_sends(update(FULLBAND))
        transport.client_sends({"type": "response.create"})
        await transport.until("response.output_audio.delta", count=10)
        voice = sine(400, 24_000)
        for piece in appends(voice, AudioFormat(), [960]):
            transport.client_sends(append(piece))
            await asyncio.sleep(0.02)
        await transport.until("response.done", count=1)
        for _ in range(60):
            transport.client_sends(append(bytes(960)))
            await asyncio.sleep(0.02)
        await transport.until("response.done", count=2)

    cascade = ScriptedCascade(texts=["stop it now"], reply=spoken(3000))
    transport = serve(cascade, client, SessionSetup(SessionSettings(), seed=1))
    first, second = (event["response"] for event in transport.of("response.created"))
    done = transport.of("response.done")
    assert [event["response"]["status"] for event in done] == ["cancelled", "completed"]
    cut = deltas_of(transport, first["id"])
    whole = deltas_of(transport, second["id"])
    everything = decode_deltas([*cut, *whole], FULLBAND)
    assert roughness(everything, 48_000) < CODED
    ended = decode_deltas(cut, FULLBAND)
    assert len(ended) < 2 * 48_000
    assert np.abs(ended[-48 * 5 :]).max() < 0.03
    # The second reply is what it would be alone: nothing of the first one is in it.
    alone = decode_deltas(whole, FULLBAND)
    assert_is_the_tone(alone[: 3 * 48_000], 48_000, CODED)


def test_truncation_counts_what_was_said() -> None:
    async def client(transport: PipeTransport) -> None:
        transport.client_sends(update(FULLBAND), {"type": "response.create"})
        item = (await transport.until("response.done"))["response"]["output"][0]["id"]
        about = {"item_id": item, "content_index": 0}
        for end_ms in (400, 333):
            transport.client_sends(
                {"type": "conversation.item.truncate", "audio_end_ms": end_ms, **about}
            )
        transport.client_sends({"type": "conversation.item.retrieve", "item_id": item})
        await transport.until("conversation.item.retrieved")

    transport = serve(ScriptedCascade(reply=spoken(333)), client)
    (error,) = transport.of("error")
    assert error["error"]["message"] == "Audio content of 333ms is already shorter than 400ms"
    assert len(transport.of("conversation.item.truncated")) == 1
    kept = retrieved(transport.of("conversation.item.retrieved")[0], AudioFormat())
    assert len(kept) == 333 * 24


def test_level_is_the_voices_in_every_coding() -> None:
    """Telephone codings keep 3 dB of headroom for loud voices; packets need none."""
    loud = np.clip(3.0 * sine(500, 24_000), -0.95, 0.95).astype(np.float32)
    outputs = [TextDelta("a"), SpeechDelta(loud, 24_000, 1), Finished(FinishReason.STOP)]
    peaks = dict[str, float]()
    for audio_format in (AudioFormat(), AudioFormat("audio/pcmu", 8_000), FULLBAND):

        async def client(transport: PipeTransport, wanted: AudioFormat = audio_format) -> None:
            transport.client_sends(update(wanted), {"type": "response.create"})
            await transport.until("response.done")

        transport = serve(ScriptedCascade(reply=outputs), client)
        played = decode_deltas(deltas_of(transport, response(transport)["id"]), audio_format)
        peaks[audio_format.type] = level_db(played[: len(played) * 4 // 5])
    assert peaks["audio/pcmu"] < peaks["audio/pcm"] - 1.0
    assert abs(peaks["audio/opus"] - peaks["audio/pcm"]) < 1.0
