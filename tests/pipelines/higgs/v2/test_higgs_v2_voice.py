"""Checkpoint folders of both members to sound, by the same code."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pipelines.higgs.assembly import HiggsVoice, Size
from pipelines.higgs.checkpoint.shards import CheckpointError
from pipelines.higgs.cloning.recording import ReferenceRefused
from pipelines.higgs.codec.config import tiny_codec_config
from pipelines.higgs.codec.weights import random_codec
from pipelines.higgs.config import FRAME_SAMPLES, HiggsConfigError
from pipelines.higgs.loading import load_voice
from pipelines.higgs.member import V2, V3, Member
from pipelines.higgs.synthetic.models import tiny_config
from pipelines.higgs.synthetic.models import write_checkpoint as write_v3
from pipelines.higgs.text.prompt import Preamble
from pipelines.higgs.v2.synthetic import random_parameters, write_checkpoint
from pipelines.types import Samples
from tests.pipelines.higgs.v2.judge import CONFIG, PUBLISHED, reference

SIZE = Size(streams=2, positions=700)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    codec = random_codec(tiny_codec_config()).state_dict()
    sizes = tiny_codec_config().section()
    v2_codec = replace(tiny_codec_config(), codebook_size=CONFIG.audio.begin_code)
    folders = {member.name: tmp_path_factory.mktemp(member.name) for member in (V3, V2)}
    write_v3(folders[V3.name], tiny_config() | sizes, seed=3, typical_rows=25, codec=codec)
    parameters = random_parameters(CONFIG, "cpu", torch.float32, seed=2)
    content = PUBLISHED | v2_codec.section()
    tensors = random_codec(v2_codec).state_dict()
    write_checkpoint(folders[V2.name], content, parameters, is_converted=False, codec=tensors)
    return folders


def voice_of(folder: Path) -> HiggsVoice:
    return load_voice(folder, size=SIZE, device="cpu", progress=lambda _: None)


def say(voice: HiggsVoice, preamble: Preamble, slot: int, *texts: str) -> tuple[Samples, int]:
    """The sound of the texts, and to where in them it was told to have come."""
    voice.open(slot, preamble, sampling=voice.member.sampling, seed=4)
    for text in texts:
        voice.engine.feed(slot, text)
    voice.engine.feed(slot, None)
    heard: list[Samples] = []
    told = 0
    for _ in range(5000):
        outcome = voice.engine.step([slot])[slot]
        assert outcome.error is None
        for delta in outcome.outputs:
            heard.append(delta.samples)
            told = max(told, delta.text_end)
        if outcome.is_ended:
            break
    else:
        pytest.fail("the reply does not end")
    voice.engine.close(slot)
    return np.concatenate(heard), told


@pytest.mark.parametrize("member", [V3, V2], ids=lambda member: member.name)
def test_a_folder_speaks_whoever_it_is_of(folders: dict[str, Path], member: Member) -> None:
    voice = voice_of(folders[member.name])
    assert voice.member is member
    made_up = voice.preamble()
    copied = voice.preamble(reference(20, seed=6), "so it was")
    assert copied.key != made_up.key
    texts = ("one and two. ", "<|emotion:awe|>three.")
    sound, told = say(voice, made_up, 0, *texts)
    assert told == sum(map(len, texts))
    assert len(sound) > 10 * FRAME_SAMPLES
    assert np.isfinite(sound).all()
    other, _ = say(voice, copied, 1, *texts)
    assert not np.array_equal(sound, other)
    # The reference's cache is copied now, not computed; nothing of the speech changes.
    again, _ = say(voice, copied, 0, *texts)
    assert np.array_equal(other, again)


def test_a_v2_voice_needs_the_words_of_its_reference(folders: dict[str, Path]) -> None:
    voice = voice_of(folders[V2.name])
    with pytest.raises(ReferenceRefused, match="transcript") as refused:
        voice.preamble(reference(20, seed=6))
    assert refused.value.field == "transcript"


def test_a_v2_folder_without_a_codec_says_where_it_belongs(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(folders[V2.name], tmp_path / "bare"))
    shutil.rmtree(folder / "codec")
    with pytest.raises(CheckpointError, match=r"bare.codec holds neither"):
        voice_of(folder)


def test_a_folder_of_another_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    with pytest.raises(HiggsConfigError, match="LlamaForCausalLM"):
        voice_of(tmp_path)
