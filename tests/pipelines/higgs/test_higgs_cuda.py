"""What of the decoder on a GPU needs none: rows as kernels read them, choices, builds that fail."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pipelines.higgs.config import HiggsConfig
from pipelines.higgs.cuda import native, packing
from pipelines.higgs.cuda.choices import MAX_SPLITS, Work, choices
from pipelines.higgs.cuda.decoder import CudaDecoder, UnsupportedModelError
from pipelines.higgs.cuda.graphs import buckets
from pipelines.higgs.rows import Row, RowBatch, Sampling
from pipelines.higgs.synthetic.models import random_parameters, tiny_config

CODEBOOKS = 8
SHARED_BYTES = 227 * 1024  # what a block may have on a Hopper GPU


def packed(rows: list[Row], bucket: int) -> np.ndarray:
    into = np.full((bucket, packing.width(CODEBOOKS)), -99, np.int32)
    packing.pack(RowBatch.of(rows, CODEBOOKS), into)
    return into


def test_a_row_travels_whole() -> None:
    codes = (1, 2, 3, 4, 5, 6, 7, 8)
    sampling = Sampling(temperature=0.7, top_p=0.25, top_k=5)
    row = Row(3, 20, codes=codes, ramp=2, seed=-7, draw=9, sampling=sampling)
    (made,) = packed([row], 1)
    assert made[packing.SLOT] == 3
    assert made[packing.POSITION] == 20
    assert made[packing.TOKEN] == -1
    assert made[packing.RAMP] == 2
    assert made[packing.SEED] == -7
    assert made[packing.DRAW] == 9
    assert made[packing.TEMPERATURE].view(np.float32) == np.float32(0.7)
    assert made[packing.TOP_P].view(np.float32) == np.float32(0.25)
    assert made[packing.TOP_K] == 5
    assert made[packing.SETTLED] == 20
    assert made[packing.GROUP] == 1
    assert made[packing.KEEPS] == 1
    assert tuple(made[packing.CODES :]) == codes


def test_rows_of_one_prompt_attend_in_groups_and_know_what_is_settled() -> None:
    prompt = [Row(1, position, token=5) for position in range(10, 19)]
    made = packed([Row(0, 7, ramp=8), *prompt, Row(2, 0, token=1)], 16)
    assert made[:11, packing.GROUP].tolist() == [1, 4, 0, 0, 0, 4, 0, 0, 0, 1, 1]
    assert made[:11, packing.SETTLED].tolist() == [7, *[10] * 9, 0]


def test_only_the_last_row_that_draws_is_kept() -> None:
    ramps = (0, -1, 1, -1)
    rows = [Row(1, position, token=5, ramp=ramp) for position, ramp in enumerate(ramps)]
    made = packed([*rows, Row(2, 0, token=5, ramp=0)], 5)
    assert made[:, packing.KEEPS].tolist() == [0, 0, 1, 0, 1]


def test_rows_that_fill_up_touch_nothing() -> None:
    made = packed([Row(0, 0, token=1, ramp=0)], 4)
    assert (made[1:, packing.POSITION] == packing.NO_POSITION).all()
    assert (made[1:, packing.RAMP] == -1).all()
    assert (made[1:, packing.KEEPS] == 0).all()
    assert (made[1:, packing.TOKEN] >= 0).all(), "or its embedding would be a slot's codes"


def test_the_kernels_read_the_columns_that_are_packed() -> None:
    source = (native._SOURCES / "rows.cuh").read_text()
    columns = {name: int(place) for name, place in re.findall(r"ROW_(\w+) = (\d+);", source)}
    assert columns
    assert columns == {name: getattr(packing, name) for name in columns}


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 17, 48, 64, 256])
def test_every_step_has_choices_that_fit_the_device(rows: int) -> None:
    chosen = choices(rows)
    assert set(chosen) == set(Work)
    for work, choice in chosen.items():
        assert 1 <= choice.splits <= MAX_SPLITS
        row_tiles = (min(rows, 64) + 7) // 8
        tile_bytes = 4 * 8192 if work is Work.ATTENTION else 16384 + row_tiles * 1024
        assert choice.stages * tile_bytes + 1024 <= SHARED_BYTES


def test_the_last_bucket_holds_the_largest_step() -> None:
    assert buckets(1) == (1,)
    assert buckets(20) == (1, 2, 4, 8, 16, 24)
    assert buckets(256)[-2:] == (128, 256)
    assert buckets(300)[-2:] == (256, 300)


def test_a_machine_without_a_gpu_is_told_so() -> None:
    config = HiggsConfig.of(tiny_config())
    parameters = random_parameters(config, "cpu", torch.bfloat16, seed=0)
    with pytest.raises(UnsupportedModelError, match="the device is cpu"):
        CudaDecoder(config, parameters, slots=1, positions=8, row_limit=1, device="cpu")


def test_the_decoder_is_imported_without_triton() -> None:
    program = "import sys, pipelines.higgs.cuda.decoder; sys.exit('triton' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.fixture
def hopper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A device that the kernels are for, and a folder for the compiler and the cache."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (9, 0))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def _write_compiler(folder: Path, script: str) -> None:
    compiler = folder / "nvcc"
    compiler.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo 13.0 && exit\n{script}\n')
    compiler.chmod(0o755)


def test_no_compiler_is_an_error_that_says_so(hopper: Path) -> None:
    with pytest.raises(native.NativeBuildError, match="no nvcc"):
        native.load_library(torch.device("cuda"))


def test_a_failing_compiler_is_quoted_and_leaves_nothing(hopper: Path) -> None:
    _write_compiler(hopper, "echo no such architecture >&2; exit 1")
    with pytest.raises(native.NativeBuildError, match="no such architecture"):
        native.load_library(torch.device("cuda"))
    assert not list((hopper / "cache").rglob("*.so"))


def _write_working_compiler(folder: Path, tried: int = 0) -> None:
    """It makes a library with the doors and nothing behind them. tried: what the trial answers."""
    doors = " ".join(
        f"void parley_{name}(){{}}" for name in ("multiply", "attend", "draw", "scale")
    )
    doors += f" int parley_try(){{return {tried};}}"
    _write_compiler(
        folder,
        f'echo run >> "{folder}/runs"\n'
        'while [ "$1" != -o ]; do shift; done\n'
        f'echo "{doors}" | cc -shared -fPIC -x c - -o "$2"',
    )


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_driver_that_is_too_old_is_found_before_anything_runs(hopper: Path) -> None:
    _write_working_compiler(hopper, tried=35)
    with pytest.raises(native.NativeBuildError, match="this driver: CUDA error 35"):
        native.load_library(torch.device("cuda"))


@pytest.mark.parametrize("is_made", [True, False])
def test_a_cache_that_cannot_be_written_says_what_to_set(hopper: Path, is_made: bool) -> None:
    _write_working_compiler(hopper)
    (hopper / "file").touch()
    (hopper / "cache").mkdir()
    (hopper / "cache" / "parley").symlink_to(hopper / "file" if is_made else hopper / "no" / "way")
    with pytest.raises(native.NativeBuildError, match="set XDG_CACHE_HOME"):
        native.load_library(torch.device("cuda"))


def test_a_user_without_a_home_is_told(hopper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    _write_working_compiler(hopper)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", home)
    with pytest.raises(native.NativeBuildError, match="home directory"):
        native.load_library(torch.device("cuda"))


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_library_is_built_once(hopper: Path) -> None:
    _write_working_compiler(hopper)
    for _ in range(2):
        native.load_library(torch.device("cuda"))
    assert (hopper / "runs").read_text() == "run\n"


def test_another_device_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (8, 6))
    with pytest.raises(native.NativeBuildError, match=r"\(8, 6\)"):
        native.load_library(torch.device("cuda"))
