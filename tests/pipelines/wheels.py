"""Small wheels in a folder, which pip takes instead of the network."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from pipelines.weights import store
from pipelines.weights.catalogue import ModelFile, Part

PARTS = (b"the first part, ", b"the second part")
WHOLE = b"".join(PARTS)


def model_file(name: str, contents: bytes, *parts: Part) -> ModelFile:
    return ModelFile(
        path=f"toy/{name}",
        size_bytes=len(contents),
        sha256=hashlib.sha256(contents).hexdigest(),
        parts=parts,
        origin="Toys, for tests",
        licence="Apache-2.0",
    )


TOY = model_file(
    "model.bin",
    WHOLE,
    Part("parley-toy-part1==1.0", "parley_toy_part1/part.bin"),
    Part("parley-toy-part2==1.0", "parley_toy_part2/part.bin"),
)
OTHER = model_file(
    "other.bin", PARTS[1], Part("parley-toy-part2==1.0", "parley_toy_part2/part.bin")
)


def write_wheel(folder: Path, number: int, contents: bytes) -> Path:
    """A wheel of `parley-toy-part<number>` with one member."""
    name = f"parley_toy_part{number}"
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}/part.bin", contents)
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: parley-toy-part{number}\nVersion: 1.0\n",
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def use_toys(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Point pip and the store at `folder`; the catalogue knows the group `toy` alone."""
    wheels = folder / "wheels"
    wheels.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PARLEY_MODELS", str(folder / "store"))
    toys = {"toy": (TOY, OTHER)}
    monkeypatch.setattr("pipelines.weights.local_store.GROUPS", toys)
    monkeypatch.setattr("pipelines.weights.catalogue.GROUPS", toys)
    return wheels


def put(file: ModelFile, contents: bytes) -> Path:
    """Lay `contents` into the store as if it were the file."""
    path = store().joinpath(*file.path.split("/"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents)
    return path
