from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.placement import (
    CONTEXT_BYTES,
    GIB,
    GpuShare,
    check_placement,
    enforce_share,
    gpu_memory_bytes,
)
from pipelines.types import StageError

H200 = 140 * GIB


def refusal(shares: list[GpuShare], *gpus: int) -> str:
    with pytest.raises(StageError) as raised:
        check_placement(shares, gpus)
    assert raised.value.code == "placement_refused"
    return raised.value.message


@pytest.mark.parametrize(
    "shares",
    [
        [],
        [GpuShare("tts", 0)],
        [GpuShare("tts", 1, needs_bytes=H200 - CONTEXT_BYTES)],
        [GpuShare("tts", 0, 0.25, 35 * GIB), GpuShare("asr", 0, 0.7, 98 * GIB)],
        [GpuShare("tts", 0, 0.9), GpuShare("asr", 1, 0.9)],
        [GpuShare("tts", 0), GpuShare("asr", 1)],
    ],
)
def test_what_fits_is_let_through(shares: list[GpuShare]) -> None:
    check_placement(shares, [H200, H200])


def test_more_than_the_whole_is_refused_with_the_sum() -> None:
    told = refusal([GpuShare("tts", 0, 0.6), GpuShare("llm", 0, 0.5)], H200)
    assert "GPU 0 (140.0 GiB)" in told and "0.6 (tts) + 0.5 (llm) = 1.1" in told
    assert "lower stages.tts.memory_share or stages.llm.memory_share" in told


def test_the_contexts_of_the_processes_count() -> None:
    shares = [GpuShare("tts", 0, 0.5), GpuShare("llm", 0, 0.49)]
    check_placement(shares, [H200 * 2])
    told = refusal(shares, H200)
    assert "0.014 for the CUDA contexts of 2 processes (1.0 GiB each)" in told


def test_each_of_several_on_a_gpu_must_declare() -> None:
    shares = [GpuShare("tts", 0, 0.3), GpuShare("asr", 0, setting="hearing"), GpuShare("llm", 0)]
    told = refusal(shares, H200)
    assert "The stages tts, asr and llm share GPU 0" in told
    assert "set hearing.memory_share and stages.llm.memory_share" in told
    assert "tts.memory_share" not in told


def test_a_share_below_the_need_is_refused_with_the_least_that_would_do() -> None:
    shares = [GpuShare("tts", 0, 0.1, 28 * GIB, "voice")]
    told = refusal(shares, H200)
    assert "tts stage needs 28.0 GiB" in told
    assert "its share of 0.1 of GPU 0 (140.0 GiB) is 14.0 GiB" in told
    assert "set voice.memory_share to at least 0.2" in told
    check_placement([GpuShare("tts", 0, 0.21, 28 * GIB)], [H200])


@pytest.mark.parametrize("part", [None, 0.5, 0.9])
def test_a_model_that_fits_no_share_needs_a_larger_gpu(part: float | None) -> None:
    told = refusal([GpuShare("tts", 0, part, 24 * GIB)], 24 * GIB)
    assert "needs 24.0 GiB" in told and "larger GPU or a smaller model" in told


@pytest.mark.parametrize(
    ("gpu", "count", "told"),
    [
        (1, 1, "placed on GPU 1, but there is only GPU 0: change stages.tts.gpu"),
        (4, 4, "there are only GPUs 0 to 3"),
        (-1, 2, "placed on GPU -1"),
        (0, 0, "no GPU can be seen here: look at `nvidia-smi`"),
    ],
)
def test_a_gpu_that_is_not_there_is_refused(gpu: int, count: int, told: str) -> None:
    assert told in refusal([GpuShare("tts", gpu, 0.5, 10 * GIB)], *[H200] * count)


@pytest.mark.parametrize("part", [0.0, -0.1, 1.1, 40.0, float("nan")])
def test_a_share_is_a_part_of_one(part: float) -> None:
    told = refusal([GpuShare("tts", 0, part)], H200)
    assert f"share of {part:g}" in told and "above 0 and at most 1" in told


def test_all_that_is_wrong_is_told_at_once() -> None:
    shares = [GpuShare("tts", 3, 0.5), GpuShare("asr", 0, 0.95), GpuShare("llm", 0, 0.01, GIB)]
    told = refusal(shares, 24 * GIB).splitlines()
    assert len(told) == 3
    assert (
        "tts" in told[0] and "llm stage needs" in told[1] and "promised more than once" in told[2]
    )


@given(
    st.lists(st.tuples(st.integers(0, 1), st.floats(0.01, 1.0)), max_size=5),
    st.integers(1, 200),
)
def test_what_is_let_through_fits(claims: list[tuple[int, float]], size_gib: int) -> None:
    shares = [GpuShare(f"s{n}", gpu, part) for n, (gpu, part) in enumerate(claims)]
    total_bytes = size_gib * GIB
    fits = all(
        sum(p * total_bytes + CONTEXT_BYTES for g, p in claims if g == gpu) <= total_bytes + 1
        for gpu in (0, 1)
    )
    try:
        check_placement(shares, [total_bytes, total_bytes])
    except StageError:
        fits_with_room = all(
            sum(p * total_bytes + CONTEXT_BYTES for g, p in claims if g == gpu) < total_bytes - 1
            for gpu in (0, 1)
        )
        assert not fits_with_room
    else:
        assert fits


class Nvml:
    """A driver's library with GPUs of some sizes, by number and by name."""

    def __init__(self, sizes: dict[str, int], init: int = 0, memory: int = 0) -> None:
        self._sizes = list(sizes.values())
        self._names = list(sizes)
        self._init = init
        self._memory = memory
        self.opened = 0

    def nvmlInit_v2(self) -> int:
        self.opened += self._init == 0
        return self._init

    def nvmlShutdown(self) -> int:
        self.opened -= 1
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = len(self._sizes)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:
        handle._obj.value = index + 1
        return 0 if index < len(self._sizes) else 2

    def nvmlDeviceGetHandleByUUID(self, name: bytes, handle: Any) -> int:
        if name.decode() not in self._names:
            return 6
        handle._obj.value = self._names.index(name.decode()) + 1
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> int:
        memory._obj.total = self._sizes[handle.value - 1]
        return self._memory


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, (10, 20, 30)),
        ("0,1,2", (10, 20, 30)),
        ("2, 0", (30, 10)),
        ("GPU-b", (20,)),
        ("GPU-c,1", (30, 20)),
        ("", ()),
        ("-1", ()),
        ("1,-1,2", (20,)),
        ("7", ()),
    ],
)
def test_the_gpus_are_those_that_a_worker_can_see(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, expected: tuple[int, ...]
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    library = Nvml({"GPU-a": 10, "GPU-b": 20, "GPU-c": 30})
    assert gpu_memory_bytes(library, visible) == expected
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert gpu_memory_bytes(library) == expected
    assert library.opened == 0


def test_without_a_driver_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.placement.NVML_LIBRARY", "libnone.so.0")
    assert gpu_memory_bytes() == ()
    assert gpu_memory_bytes(Nvml({"GPU-a": 10}, init=9), "0") == ()


def test_a_driver_that_tells_no_memory_is_an_error() -> None:
    library = Nvml({"GPU-a": 10}, memory=999)
    with pytest.raises(StageError, match="nvidia-smi"):
        gpu_memory_bytes(library, "0")
    assert library.opened == 0


def test_a_share_is_enforced_by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[float, int]] = []
    cuda = SimpleNamespace(set_per_process_memory_fraction=lambda *told: calls.append(told))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))  # type: ignore[arg-type]
    enforce_share(1, 0.25)
    assert calls == [(0.25, 1)]


def test_checking_does_not_import_torch() -> None:
    program = (
        "import sys, pipelines.placement as p; p.gpu_memory_bytes(); "
        "p.check_placement([], []); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
