"""Where a stage on PyTorch runs, and what it is told where that cannot be."""

from __future__ import annotations

import pytest

from pipelines.stages import torch_device
from pipelines.stages.torch_device import choose_device, claim_device
from pipelines.types import StageError


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """The shares that were enforced, on a machine with two GPUs."""
    found: list[tuple[int, float]] = []
    monkeypatch.setattr(torch_device, "enforce_share", lambda *share: found.append(share))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    return found


@pytest.mark.parametrize(("is_there", "device"), [(True, "cuda:1"), (False, "cpu")])
def test_auto_takes_a_gpu_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, is_there: bool, device: str
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: is_there)
    assert choose_device("auto", 1) == device
    assert (choose_device("cuda", 2), choose_device("cpu", 2)) == ("cuda:2", "cpu")


def test_a_process_is_held_to_its_share_on_a_gpu_alone(held: list[tuple[int, float]]) -> None:
    claim_device("cpu", 0.4, "stages.speaker")
    claim_device("cuda:1", None, "stages.speaker")
    assert held == []
    claim_device("cuda:1", 0.4, "stages.speaker")
    assert held == [(1, 0.4)]


def test_a_gpu_that_is_not_there_is_told_with_its_setting(
    held: list[tuple[int, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StageError, match=r"sees 2 GPUs.*stages\.speaker\.gpu") as raised:
        claim_device("cuda:2", 0.4, "stages.speaker")
    assert raised.value.code == "no_cuda"
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(StageError, match=r"no GPU here: set stages\.recogniser\.device to cpu"):
        claim_device("cuda:0", None, "stages.recogniser")
    assert held == []
