"""Where Whisper runs: what CTranslate2 is told. On a GPU it has not been run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipelines.runtime.cpu import CpuToken
from pipelines.stages import asr_whisper, factories, whisper_model
from pipelines.stages.asr_whisper import WhisperRecogniser
from pipelines.types import StageError
from tests.pipelines.waiting import check


class Library:
    """Stands in for ctranslate2."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.told: dict[str, Any] = {}
        self.failure = failure
        self.models = SimpleNamespace(Whisper=self.make)

    def make(self, folder: str, **told: Any) -> SimpleNamespace:
        self.told = told
        if self.failure is not None:
            raise self.failure
        return SimpleNamespace(is_multilingual=False)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Library:
    (tmp_path / "vocabulary.txt").write_text("<|endoftext|>\n", encoding="utf-8")
    library = Library()
    monkeypatch.setattr(whisper_model, "import_sleeping", lambda _name: library)
    return library


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        (None, {"device": "cpu", "device_index": 0, "compute_type": "int8"}),
        (0, {"device": "cuda", "device_index": 0, "compute_type": "float16"}),
        (2, {"device": "cuda", "device_index": 2, "compute_type": "float16"}),
    ],
)
def test_the_device_and_its_precision_are_told(
    library: Library, tmp_path: Path, gpu: int | None, expected: dict[str, Any]
) -> None:
    whisper_model.WhisperModel(tmp_path, 2, gpu)
    assert library.told == {**expected, "intra_threads": 2, "inter_threads": 1}


@pytest.mark.parametrize("gpu", [None, 1])
def test_a_gpu_that_cannot_be_used_says_what_it_needs(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: int | None
) -> None:
    library.failure = ValueError("This CTranslate2 package was not compiled with CUDA support")
    monkeypatch.setattr(asr_whisper, "resolve_folder", lambda *_: tmp_path)
    recogniser = WhisperRecogniser(gpu=gpu)

    async def main() -> None:
        with pytest.raises(StageError, match="not compiled with CUDA") as caught:
            await recogniser.start(lambda line: None)
        assert ("set stages.recogniser.device to cpu" in str(caught.value)) == (gpu is not None)
        await recogniser.close()

    check(main)


def test_on_a_gpu_it_waits_for_nobodys_turn_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens: list[CpuToken | None] = []

    def make(*_: Any, cpu: CpuToken | None, **__: Any) -> None:
        tokens.append(cpu)

    monkeypatch.setattr(asr_whisper, "WhisperRecogniser", make)
    token = CpuToken()
    for gpu in (None, 0):
        factories.create_whisper(
            model="base", path=None, threads=2, partials=True, gpu=gpu, cpu=token
        )
    assert tokens == [token, None]
