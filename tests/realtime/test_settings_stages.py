"""What a configuration may say of stages, and the lines that name its mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.synthetic.models import tiny_config
from pipelines.higgs.v2.synthetic import published_config
from pipelines.types import StageError
from realtime.settings_file import SettingsError, load_settings
from realtime.stage_checks import check_gpus
from realtime.stage_settings import Higgs, SGLang, Stages, Whisper, WhisperTorch

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
GIB = 1 << 30
SGLANG = "stages:\n  writer:\n    kind: sglang\n    memory_share: 0.4\n"
HIGGS = "stages:\n  speaker:\n    kind: higgs\n"


def stages(folder: Path, text: str) -> Stages:
    path = folder / "parley.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path, {}).stages


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "stages:\n  writer:\n    kind: sglang\n",
            ":2: 'stages.writer.memory_share' is missing",
        ),
        (
            "stages:\n  writer:\n    kind: sglang\n    memory_share: 0\n",
            ":4: 'stages.writer.memory_share' is 0; allowed: more than 0",
        ),
        (
            f"{SGLANG}    process: inline\n",
            ":5: 'stages.writer.process' is 'inline'; allowed: 'worker'",
        ),
        (
            f"{SGLANG}    context: 4096\n",
            ":5: 'stages.writer.context' is no setting; did you mean 'context_tokens'?",
        ),
        (f"{SGLANG}    context_tokens: 100\n", ":5: 'stages.writer.context_tokens' is 100;"),
        (f"{SGLANG}    model: ''\n", ":5: 'stages.writer.model' is ''; allowed: 1 or more char"),
        (f"{SGLANG}    load_format: gguf\n", ":5: 'stages.writer.load_format' is 'gguf'; allowed"),
        (f"{HIGGS}    device: gpu\n", ":4: 'stages.speaker.device' is 'gpu'; allowed: 'auto', "),
        (f"{HIGGS}    memory_share: 1.5\n", ":4: 'stages.speaker.memory_share' is 1.5; allowed: 1"),
        (f"{HIGGS}    slots: none\n", ":4: 'stages.speaker.slots' is 'none'; allowed: a whole"),
        (
            f"{HIGGS}    voices: [anna.wav]\n",
            ":4: 'stages.speaker.voices' is ['anna.wav']; allowed: a mapping of names to audio and "
            "transcript",
        ),
        (f"{HIGGS}    voices: null\n", ":4: 'stages.speaker.voices' is null; allowed: a mapping"),
        (
            f"{HIGGS}    voices:\n      anna: anna.wav\n",
            ":5: 'stages.speaker.voices.anna' is 'anna.wav'; allowed: a section with settings",
        ),
        (
            f"{HIGGS}    voices:\n      anna:\n        transcript: Hello.\n",
            ":5: 'stages.speaker.voices.anna.audio' is missing",
        ),
        (
            f"{HIGGS}    voices:\n      anna:\n        audio: a.wav\n        text: Hello.\n",
            ":7: 'stages.speaker.voices.anna.text' is no setting; known here: audio, transcript",
        ),
        (
            "stages:\n  recogniser:\n    kind: whisper\n    memory_share: 0.1\n",
            ":4: 'stages.recogniser.memory_share' is no setting",
        ),
        (
            "stages:\n  speaker:\n    kind: piper\n    process: thread\n",
            ":4: 'stages.speaker.process' is 'thread'; allowed: 'inline' or 'worker'",
        ),
        (
            "stages:\n  writer: {kind: gpt}\n",
            ":2: 'stages.writer.kind' is 'gpt'; allowed: 'llama', 'sglang', 'openai', 'scripted'",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line_and_cure(
    tmp_path: Path, text: str, expected: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        stages(tmp_path, text)
    lines = str(caught.value).splitlines()
    assert len(lines) == 1
    assert lines[0].removeprefix(f"{tmp_path}/").startswith("parley.yaml" + expected)


def test_stages_of_the_cpu_stay_in_the_server_and_those_of_a_gpu_leave_it(tmp_path: Path) -> None:
    usual = Stages()
    assert isinstance(usual.recogniser, Whisper) and usual.recogniser.process == "inline"
    rest = "  speaker: {kind: higgs}\n  recogniser: {kind: whisper_torch}\n"
    chosen = stages(tmp_path, SGLANG + rest)
    assert isinstance(chosen.recogniser, WhisperTorch) and chosen.recogniser.process == "worker"
    assert isinstance(chosen.writer, SGLang) and chosen.writer.process == "worker"
    assert isinstance(chosen.speaker, Higgs) and chosen.speaker.process == "worker"
    assert chosen.speaker.voice_names == ("default",)


def test_voices_keep_their_order(tmp_path: Path) -> None:
    voices = "    voices:\n      zoe: {audio: z.wav, transcript: Hi.}\n      anna: {audio: a.wav}\n"
    speaker = stages(tmp_path, HIGGS + voices).speaker
    assert isinstance(speaker, Higgs)
    assert speaker.voice_names == ("zoe", "anna")
    assert speaker.voices["zoe"].transcript == "Hi." and speaker.voices["anna"].transcript is None


# ---- room on GPUs --------------------------------------------------------------------------------


@pytest.fixture
def empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARLEY_MODELS", str(tmp_path / "store"))
    return tmp_path / "store"


def problems(chosen: Stages, *memory_bytes: int) -> list[str]:
    try:
        check_gpus(chosen, memory_bytes)
    except StageError as error:
        assert error.code == "placement_refused"
        return error.message.splitlines()
    return []


def test_the_shipped_file_fits_on_one_large_card_and_on_no_small_one(empty_store: Path) -> None:
    chosen = load_settings(CONFIGS / "higgs.yaml", {}).stages
    assert problems(chosen, 80 * GIB) == []
    assert len(problems(chosen)) == 1, "what may be on the CPU asks for nothing"
    hearing = WhisperTorch(kind="whisper_torch").model
    for model, size_bytes in (
        (Higgs(kind="higgs").model, 9 * GIB),
        ("maker/other", 30 * GIB),
        (hearing, GIB),
    ):
        shard = empty_store.joinpath(*model.split("/"), "model.safetensors")
        shard.parent.mkdir(parents=True)
        with shard.open("wb") as opened:
            opened.truncate(size_bytes)  # a hole: it takes no room
    small = problems(chosen, 21 * GIB)
    assert len(small) == 1 and "The speaker stage needs 9.0 GiB" in small[0]
    assert "set stages.speaker.memory_share to at least 0.43" in small[0]


def test_what_stages_need_beside_their_weights_counts(empty_store: Path, tmp_path: Path) -> None:
    model = tmp_path / "voice"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(tiny_config()), encoding="utf-8")
    backbone = HiggsConfig.of(tiny_config()).backbone
    row_bytes = 2 * backbone.layers * backbone.kv_heads * backbone.head_dim * 2
    slots = 12 + 4  # one for each reply, and those of references
    kept_gib = slots * 32_768 * row_bytes / GIB
    card_bytes = 1 << 29  # the voice's caches alone fill it
    higgs = Higgs(kind="higgs", model=str(model), slots=12, positions=32_768)
    [problem] = problems(Stages(speaker=higgs), card_bytes)
    assert f"The speaker stage needs {kept_gib:.1f} GiB" in problem
    (model / "config.json").write_text(json.dumps(published_config()), encoding="utf-8")
    (model / "codec").mkdir()
    with (model / "codec" / "model.safetensors").open("wb") as opened:
        opened.truncate(3 * GIB)  # a hole: it takes no room
    [problem] = problems(Stages(speaker=higgs), GIB)
    assert "The speaker stage needs 3." in problem, "v2 has its codec in a folder of its own"
    writer = SGLang(kind="sglang", memory_share=0.2, load_format="dummy")
    [problem] = problems(Stages(writer=writer), 12 * GIB)
    assert "The writer stage needs 3.0 GiB" in problem


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ({"writer": 0.7, "speaker": 0.5}, "0.7 (writer) + 0.5 (speaker) = 1.2"),
        ({"writer": 0.4, "speaker": None}, "set stages.speaker.memory_share"),
    ],
)
def test_shares_that_do_not_fit_together_are_named(
    empty_store: Path, shares: dict[str, float | None], expected: str
) -> None:
    chosen = Stages(
        writer=SGLang(kind="sglang", memory_share=shares["writer"] or 0),
        speaker=Higgs(kind="higgs", memory_share=shares["speaker"]),
    )
    [problem] = problems(chosen, 80 * GIB)
    assert expected in problem
    apart = chosen.model_copy(update={"speaker": Higgs(kind="higgs", gpu=1)})
    assert problems(apart, 80 * GIB, 80 * GIB) == []
    assert "there is only GPU 0" in problems(apart, 80 * GIB)[0]


def test_shares_of_more_than_a_card_are_wrong_without_any_card(empty_store: Path) -> None:
    chosen = Stages(
        recogniser=WhisperTorch(kind="whisper_torch", memory_share=0.6),
        speaker=Higgs(kind="higgs", memory_share=0.5),
    )
    [problem] = problems(chosen)
    assert problem == (
        "GPU 0 is promised more than once: 0.6 (recogniser) + 0.5 (speaker) = 1.1 of its memory. "
        "Together they may be 1: lower stages.recogniser.memory_share or "
        "stages.speaker.memory_share."
    )
    ears = WhisperTorch(kind="whisper_torch", memory_share=0.5)
    assert problems(chosen.model_copy(update={"recogniser": ears})) == []
    undeclared = Stages(recogniser=WhisperTorch(kind="whisper_torch"), speaker=Higgs(kind="higgs"))
    assert problems(undeclared) == [], "on the CPU they share nothing"


def test_where_no_stage_needs_a_gpu_none_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def look() -> tuple[int, ...]:
        raise AssertionError("nobody asked for a GPU")

    monkeypatch.setattr("realtime.stage_checks.gpu_memory_bytes", look)
    check_gpus(Stages())
    check_gpus(Stages(speaker=Higgs(kind="higgs", device="cpu")))
    check_gpus(Stages(recogniser=WhisperTorch(kind="whisper_torch", device="cpu")))
