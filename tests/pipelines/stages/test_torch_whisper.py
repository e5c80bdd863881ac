"""Whisper on PyTorch with random weights: its passes, what it may write, and how it is called."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration

from pipelines.runtime.remote_stage import ProcessStage
from pipelines.runtime.ticket import Aborted
from pipelines.stages import factories
from pipelines.stages.asr_whisper_torch import TorchWhisperRecogniser
from pipelines.stages.mel import log_mel
from pipelines.stages.whisper_model import PROMPT_MAX_TOKENS, WhisperModel
from pipelines.stages.whisper_network import Decoding, encode
from pipelines.stages.whisper_torch import TorchEngine
from pipelines.stages.whisper_vocabulary import Vocabulary
from pipelines.types import HEARING_RATE_HZ, RecogniseRequest, Samples, StageError
from tests.pipelines.stages.tiny_whisper import save_tiny
from tests.pipelines.waiting import check, until

FULL_FRAMES = 3000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tiny-whisper"))


@pytest.fixture(scope="module")
def engine(folder: Path) -> TorchEngine:
    return TorchEngine(folder)


@pytest.fixture(scope="module")
def network(folder: Path) -> Any:
    return WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()


def buzz(seconds: float) -> Samples:
    """With the pitch of a voice."""
    at = np.arange(int(seconds * HEARING_RATE_HZ)) / HEARING_RATE_HZ
    parts = [np.sin(2 * np.pi * 120 * k * at) / k for k in range(1, 8)]
    return (0.1 * np.sum(parts, axis=0)).astype(np.float32)


def nothing() -> None:
    pass


# ---- the passes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bands", [80, 128])
def test_the_spectrogram_is_that_of_the_models(bands: int) -> None:
    extractor = WhisperFeatureExtractor(feature_size=bands)
    sound = np.zeros(30 * HEARING_RATE_HZ, np.float32)
    sound[:48_000] = buzz(3.0) + np.random.default_rng(5).normal(0, 0.01, 48_000)
    expected = extractor(sound, sampling_rate=HEARING_RATE_HZ, return_tensors="np")
    assert np.abs(log_mel(sound, bands) - expected["input_features"][0]).max() < 1e-3


@torch.inference_mode()
def test_the_passes_are_those_of_transformers(network: Any) -> None:
    sound = torch.randn(1, 8, FULL_FRAMES, generator=torch.Generator().manual_seed(1))
    tokens = [260, 7, 33, 290, 12, 5]
    expected = network(input_features=sound, decoder_input_ids=torch.tensor([tokens])).logits[0]
    encoded = encode(network.model.encoder, sound, nothing)
    assert encoded.shape == (1, FULL_FRAMES // 2, 32)
    decoding = Decoding(network.model.decoder, encoded, len(tokens))
    states = torch.cat([decoding.feed(tokens[:3]), *(decoding.feed([t]) for t in tokens[3:])])
    torch.testing.assert_close(network.proj_out(states), expected, atol=1e-4, rtol=1e-4)


def test_work_follows_the_sound(engine: TorchEngine) -> None:
    encoded = engine.encode(np.zeros((8, 1000), np.float32))
    assert encoded.shape == (1, 500, 32)


def test_decoding_is_greedy_and_tells_its_odds(engine: TorchEngine, network: Any) -> None:
    encoded = engine.encode(log_mel(buzz(30.0), 8))
    vocabulary = engine.vocabulary
    start = [vocabulary.special(name) or 0 for name in ("startofprev", "startoftranscript", "en")]
    decoded = engine.decode(encoded, start, 9)
    assert 1 <= len(decoded.tokens) <= 9
    tokens, total = list(start), 0.0
    with torch.inference_mode():
        scores = network(encoder_outputs=(encoded,), decoder_input_ids=torch.tensor([start])).logits
        silent = scores[0, 1].softmax(-1)[vocabulary.special("nospeech")]
        for position, token in enumerate(decoded.tokens):
            found = network(encoder_outputs=(encoded,), decoder_input_ids=torch.tensor([tokens]))
            scores = found.logits[0, -1, : vocabulary.end + 1].clone()
            if position == 0:
                scores[vocabulary.end] = -torch.inf  # an empty text is no text
            assert int(scores.argmax()) == token
            total += float(scores.log_softmax(-1)[token])
            tokens.append(token)
    assert decoded.no_speech == pytest.approx(float(silent), rel=1e-3)
    if len(decoded.tokens) == 9:
        assert decoded.log_probability == pytest.approx(total / 9, abs=1e-4)


# ---- what it may write ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_markers_and_suppressed_tokens_are_never_written(tmp_path: Path, seed: int) -> None:
    barred = list(range(0, 200))
    folder = save_tiny(
        tmp_path, seed=seed, suppress_tokens=barred, begin_suppress_tokens=[*range(200, 240)]
    )
    engine = TorchEngine(folder)
    start = [engine.vocabulary.special("startoftranscript") or 0]
    decoded = engine.decode(engine.encode(log_mel(buzz(2.0), 8)), start, 30)
    assert all(200 <= token < engine.vocabulary.end for token in decoded.tokens)
    assert not decoded.tokens or decoded.tokens[0] >= 240
    [*_, hearing] = WhisperModel(engine).hear(buzz(2.0), "en")
    assert "<|" not in hearing.text


def test_language_is_as_asked_or_one_of_those_known(engine: TorchEngine) -> None:
    known = {engine.vocabulary.special(name) for name in ("en", "de")}
    assert engine.detect_language(engine.encode(log_mel(buzz(2.0), 8))) in known
    assert starts(engine, "de")[0][1:2] == [engine.vocabulary.special("de")]
    assert starts(engine, None)[0][1] in known
    assert starts(engine, "xx")[0][1] in known


def test_likely_words_go_before_and_cannot_smuggle_markers(engine: TorchEngine) -> None:
    vocabulary = engine.vocabulary
    plain = starts(engine, "en")[0]
    first = starts(engine, "en", "the weather <|endoftext|>" * 20)[0]
    assert first[0] == vocabulary.special("startofprev")
    assert first[-len(plain) :] == plain
    words = first[1 : -len(plain)]
    assert len(words) == PROMPT_MAX_TOKENS and max(words) < vocabulary.end


def test_words_are_cut_into_the_tokens_of_the_checkpoint(folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    vocabulary = Vocabulary.of_checkpoint(folder)
    for text in (" the train leaves", " thank you, weather 42", " naïve – 日本"):
        expected = tokenizer.encode(text).ids
        assert vocabulary.encode(text) == expected
        assert vocabulary.decode([*expected, vocabulary.end + 2]) == tokenizer.decode(expected)


def starts(engine: TorchEngine, language: str | None, prompt: str = "") -> list[list[int]]:
    """What precedes the text of each hearing."""
    found: list[list[int]] = []

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

        def decode(self, encoded: Any, start: Any, limit_tokens: int, pause: Any) -> Any:
            found.append(list(start))
            return engine.decode(encoded, start, limit_tokens, pause)

    watched: Any = Watched()
    list(WhisperModel(watched).hear(buzz(2.0), language, prompt))
    return found


# ---- the stage -----------------------------------------------------------------------------------


def test_an_abort_is_seen_between_tokens(engine: TorchEngine) -> None:
    encoded = engine.encode(log_mel(buzz(2.0), 8))
    start = [engine.vocabulary.special("startoftranscript") or 0]
    written = len(engine.decode(encoded, start, 30).tokens)
    calls = 0

    def pause() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Aborted

    assert written > 3
    with pytest.raises(Aborted):
        engine.decode(encoded, start, 30, pause)
    assert calls == 2


def test_the_stage_hears_shows_partials_and_frees_what_is_aborted(folder: Path) -> None:
    async def main() -> None:
        stage = TorchWhisperRecogniser(folder)
        await stage.start(lambda line: None)
        try:
            stream = stage.open(RecogniseRequest("talk", wants_partials=True))
            await stream.push(buzz(2.0))
            assert not (await anext(stream)).is_final
            await stream.push(buzz(0.5))
            await stream.finish()
            assert [output.is_final async for output in stream] == [True]
            gone = stage.open(RecogniseRequest("gone"))
            await gone.push(buzz(2.0))
            await gone.finish()
            gone.abort()
            assert [output async for output in gone] == []
            await until(lambda: stage.active == 0)
        finally:
            await stage.close()

    check(main)


def test_the_stage_hears_in_a_process_of_its_own(folder: Path) -> None:
    values = {
        "model": str(folder),
        "device": "cpu",
        "gpu": 0,
        "memory_share": None,
        "partials": True,
    }

    async def main() -> None:
        stage = ProcessStage("asr", f"{factories.__name__}:create_whisper_torch", values)
        await stage.start(lambda line: None)
        try:
            stream = stage.open(RecogniseRequest("talk"))
            await stream.push(buzz(1.0))
            await stream.finish()
            assert [output.is_final async for output in stream] == [True]
        finally:
            await stage.close()

    check(main)


# ---- folders that are none -----------------------------------------------------------------------


def spoil(folder: Path, what: str) -> None:
    path = folder / what
    match what:
        case "config.json":
            content = json.loads(path.read_text(encoding="utf-8"))
            path.write_text(json.dumps({**content, "model_type": "llama"}), encoding="utf-8")
        case "model.safetensors":
            path.write_bytes(b"no weights")
        case "tokenizer.json":
            path.write_text('{"model": {"vocab": {"a": 0}}, "added_tokens": []}', encoding="utf-8")
        case _:
            path.write_text("{", encoding="utf-8")


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("config.json", "is no Whisper checkpoint: config.json describes a model of type 'llama'"),
        ("model.safetensors", "its weights cannot be loaded"),
        ("tokenizer.json", "its tokenizer is not that of a Whisper: it has no <|endoftext|>"),
        ("generation_config.json", "generation_config.json is not JSON"),
    ],
)
def test_a_spoilt_checkpoint_is_refused_with_a_cure(
    folder: Path, tmp_path: Path, what: str, expected: str
) -> None:
    spoilt = Path(shutil.copytree(folder, tmp_path / "spoilt"))
    spoil(spoilt, what)
    assert expected in refusal(spoilt)


def test_weights_that_are_missing_are_not_made_up(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    spoilt = Path(shutil.copytree(folder, tmp_path / "spoilt"))
    weights = load_file(spoilt / "model.safetensors")
    del weights["model.decoder.layers.2.fc1.weight"]
    save_file(weights, spoilt / "model.safetensors", metadata={"format": "pt"})
    assert "its weights lack model.decoder.layers.2.fc1.weight" in refusal(spoilt)


def test_a_folder_without_its_files_is_told(folder: Path, tmp_path: Path) -> None:
    assert "config.json: correct stages.recogniser.model" in refusal(tmp_path)
    spoilt = Path(shutil.copytree(folder, tmp_path / "spoilt"))
    (spoilt / "tokenizer.json").unlink()
    assert "it has neither tokenizer.json nor vocab.json" in refusal(spoilt)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_told(folder: Path) -> None:
    assert "set stages.recogniser.device to cpu" in refusal(folder, "cuda:0")


def refusal(folder: Path, device: str = "cpu") -> str:
    told: list[str] = []

    async def main() -> None:
        stage = TorchWhisperRecogniser(folder, device)
        with pytest.raises(StageError) as caught:
            await stage.start(lambda line: None)
        await stage.close()
        told.append(caught.value.message)

    check(main)
    return told[0]
