"""The Higgs voice as a stage: text pushed on the loop, sound from its thread."""

from __future__ import annotations

import asyncio
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.types import SpeakRequest, SpeechDelta, StageError

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

TEXTS = ("Good morning to you. ", "How are you? ", "It rains.")
PATIENCE_S = 60.0


def speaker(folder: Path, **options: Any):  # type: ignore[no-untyped-def]
    from pipelines.stages.tts_higgs import HiggsSpeaker, HiggsSpeakerOptions

    options = {"slots": 2, "positions": 600, "seed": 5, **options}
    return HiggsSpeaker(HiggsSpeakerOptions(folder, **options))


async def say(stage: Any, *texts: str, number: int = 0, voice: str = "") -> list[SpeechDelta]:
    stream = stage.open(SpeakRequest(f"request-{number}", voice))
    for text in texts:
        await stream.push(text)
    await stream.finish()
    return [delta async for delta in stream]


def sound(deltas: list[SpeechDelta]) -> np.ndarray:
    return np.concatenate([delta.samples for delta in deltas])


async def run(stage: Any, script: Any) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        await stage.start(lambda _: None)
        try:
            return await script(stage)
        finally:
            await stage.close()


def test_a_voice_s_name_may_be_written_in_other_capitals() -> None:
    from pipelines.higgs.text.prompt import Preamble
    from pipelines.stages.higgs_model import HiggsModel

    made = {name: Preamble((), name) for name in ("first", "anna", "Ben", "ben")}
    model = HiggsModel(object(), made, object(), references=object())  # type: ignore[arg-type]

    def meant(voice: str) -> str:
        return model._preamble(SpeakRequest("request", voice)).key

    assert [meant(name) for name in ("ANNA", "Ben", "ben", "nobody")] == [
        "anna",
        "Ben",
        "ben",
        "first",
    ]


def test_text_in_pieces_becomes_sound_that_covers_it(checkpoint: Path) -> None:
    async def script(stage: Any) -> list[SpeechDelta]:
        return await say(stage, *TEXTS)

    deltas = asyncio.run(run(speaker(checkpoint), script))
    assert len(deltas) > 3 and deltas[-1].text_end == sum(map(len, TEXTS))
    assert len(sound(deltas)) > 24_000 // 2


def test_more_replies_than_slots_all_end_and_sound_as_alone(checkpoint: Path) -> None:
    async def script(stage: Any) -> list[Any]:
        alone = [sound(await say(stage, text, number=n)) for n, text in enumerate(TEXTS)]
        together = await asyncio.gather(*(say(stage, TEXTS[n % 3], number=n) for n in range(3, 9)))
        return [*alone, *map(sound, together)]

    found = asyncio.run(run(speaker(checkpoint), script))
    for number, samples in enumerate(found):
        np.testing.assert_array_equal(samples, found[number % 3])


def test_an_abort_frees_the_slot(checkpoint: Path) -> None:
    async def script(stage: Any) -> int:
        for number in range(6):
            stream = stage.open(SpeakRequest(f"aborted-{number}", ""))
            await stream.push("A long text, that goes on and on, and is broken off. " * 5)
            await anext(aiter(stream))
            stream.abort()
        await say(stage, "And now?")
        return stage.active

    stage = speaker(checkpoint, slots=1)
    assert asyncio.run(run(stage, script)) == 0
    assert stage.abort_latency.count == 6


def test_text_that_comes_late_goes_on(checkpoint: Path) -> None:
    async def script(stage: Any) -> list[SpeechDelta]:
        stream = stage.open(SpeakRequest("late", ""))
        await stream.push(TEXTS[0])
        deltas: list[SpeechDelta] = []
        while not deltas or deltas[-1].text_end < len(TEXTS[0]):
            deltas.append(await anext(stream))  # the tail comes without more text
        await stream.push(TEXTS[1])
        await stream.finish()
        return deltas + [delta async for delta in stream]

    deltas = asyncio.run(run(speaker(checkpoint), script))
    assert deltas[-1].text_end == len(TEXTS[0]) + len(TEXTS[1])


@pytest.mark.parametrize("text", ["", "🙂", "<|audio|>", "\u0000\ud800"])
def test_text_that_cannot_be_said_ends_in_silence(checkpoint: Path, text: str) -> None:
    async def script(stage: Any) -> list[SpeechDelta]:
        return await say(stage, text)

    deltas = asyncio.run(run(speaker(checkpoint), script))
    assert sum(len(delta.samples) for delta in deltas) == 0


def test_a_reference_that_leaves_no_room_is_found_at_the_start(
    checkpoint: Path, tmp_path: Path
) -> None:
    import soundfile

    from pipelines.stages.higgs_voices import VoiceFile

    tone = np.sin(np.arange(24_000 * 20) * 0.05).astype(np.float32) * 0.3
    soundfile.write(tmp_path / "long.wav", tone, 24_000)
    stage = speaker(checkpoint, voices=(VoiceFile("anna", tmp_path / "long.wav"),))
    place = rf"^stages\.speaker\.voices\.anna\.audio: {tmp_path}/long\.wav"
    told = rf"{place}: of 600 positions .* raise the positions to (\d+) or more"
    with pytest.raises(StageError, match=told) as caught:
        asyncio.run(run(stage, lambda stage: asyncio.sleep(0)))
    least = int(re.search(told, caught.value.message)[1])  # pyright: ignore[reportOptionalSubscript]
    stage = speaker(checkpoint, positions=least, voices=(VoiceFile("anna", tmp_path / "long.wav"),))
    assert asyncio.run(run(stage, lambda stage: say(stage, "Hi.")))


def test_a_voice_that_cannot_be_used_is_told_by_its_setting_and_file(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import soundfile

    from pipelines.stages.higgs_voices import VoiceFile

    soundfile.write(tmp_path / "hush.wav", np.zeros(48_000, np.float32), 24_000)
    monkeypatch.chdir(tmp_path)
    stage = speaker(checkpoint, voices=(VoiceFile("anna", Path("hush.wav")),))
    with pytest.raises(StageError) as caught:
        asyncio.run(run(stage, lambda stage: asyncio.sleep(0)))
    assert caught.value.message == (
        f"stages.speaker.voices.anna.audio: {tmp_path}/hush.wav: silent; record it again, closer "
        "to the microphone."
    )


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json"])
def test_a_file_that_is_missing_is_named(checkpoint: Path, tmp_path: Path, missing: str) -> None:
    for file in checkpoint.iterdir():
        if file.name != missing:
            (tmp_path / file.name).symlink_to(file)
    with pytest.raises(StageError, match=missing):
        asyncio.run(run(speaker(tmp_path), lambda stage: asyncio.sleep(0)))


def test_too_little_memory_names_the_settings(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from pipelines.stages import tts_higgs

    def load(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("Tried to allocate 2 GiB")

    monkeypatch.setattr(tts_higgs, "load_voice", load)
    with pytest.raises(StageError, match="2 GiB") as caught:
        asyncio.run(run(speaker(checkpoint), lambda stage: asyncio.sleep(0)))
    for setting in ("memory_share", "slots (2)", "positions (600)"):
        assert f"stages.speaker.{setting}" in caught.value.message
