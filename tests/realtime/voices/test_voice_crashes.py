"""A server that is killed anywhere leaves a whole voice or none, and its rubbish is swept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from realtime.voices import shelf as shelf_module
from realtime.voices.records import Records, Writing
from realtime.voices.shelf import VoiceShelf
from tests.realtime.voices.recordings import recording

CONSENT = "I agree that my voice is copied."
DATA = recording(1.2)


class Stops:
    """Copies a folder before and after each of a shelf's steps: as a killed server leaves it."""

    def __init__(self, folder: Path, to: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder, self._to = folder, to
        self.steps: list[str] = []
        self.copies: list[Path] = []
        for owner, name in (
            (shelf_module.os, "fsync"),
            (shelf_module.os, "replace"),
            (Writing, "insert"),
            (Writing, "delete"),
            (Path, "unlink"),
        ):
            patch.setattr(owner, name, self._around(name, getattr(owner, name)))
        patch.setattr(Records, "writing", self._watched(Records.writing))

    def _around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **options: Any) -> Any:
            self._stop(f"before {name}")
            result = call(*args, **options)
            self.steps.append(name)
            self._stop(f"after {name}")
            return result

        return step

    def _watched(self, call: Callable[[Records], Any]) -> Callable[[Records], Any]:
        @contextmanager
        def writing(records: Records) -> Iterator[Writing]:
            with call(records) as inside:
                yield inside
                self._stop("before the commit")
            self.steps.append("commit")
            self._stop("after the commit")

        return writing

    def _stop(self, label: str) -> None:
        copy = self._to / f"{len(self.copies):02} {label}"
        shutil.copytree(self._folder, copy)
        self.copies.append(copy)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "voices"


def state_of(folder: Path) -> bool:
    """Whether the voice is there, after a restart; whole or not at all, and no rubbish beside."""
    shelf = VoiceShelf(folder)
    sample = shelf.find("anna")
    files = {path.name for path in folder.iterdir() if not path.name.startswith("voices.sqlite3")}
    records = shelf.list()
    assert files == {record.file_name for record in records}
    if sample is None:
        assert records == ()
        shelf.add("anna", DATA, None, CONSENT)  # what was interrupted can be done again
        assert shelf.find("anna") is not None
    else:
        assert len(records) == 1 and len(sample.data) == 44 + 2 * 28_800
    shelf.close()
    return sample is not None


def test_killed_while_it_adds(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = VoiceShelf(folder)
    shelf.add("other", DATA, None, CONSENT)
    shelf.delete("other")
    with monkeypatch.context() as patch:
        stops = Stops(folder, tmp_path / "stops", patch)
        shelf.add("anna", DATA, None, CONSENT)
    # The file is whole on the disk, and so is its name, before a record names it.
    assert stops.steps == ["fsync", "replace", "fsync", "insert", "commit"]
    states = [state_of(copy) for copy in stops.copies]
    assert states == [False] * 9 + [True]


def test_killed_while_it_deletes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = VoiceShelf(folder)
    shelf.add("anna", DATA, None, CONSENT)
    with monkeypatch.context() as patch:
        stops = Stops(folder, tmp_path / "stops", patch)
        shelf.delete("anna")
    assert stops.steps == ["delete", "commit", "unlink"]
    assert [state_of(copy) for copy in stops.copies] == [True] * 3 + [False] * 3


def test_a_start_beside_one_that_adds_takes_nothing_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is on its way to its record looks like rubbish, and is none."""
    first, second = VoiceShelf(folder), VoiceShelf(folder)
    first.add("other", DATA, None, CONSENT)
    monkeypatch.setattr("realtime.voices.records.BUSY_TIMEOUT_S", 0.01)
    insert = Writing.insert

    def insert_late(writing: Writing, record: Any) -> None:
        with pytest.raises(shelf_module.ShelfBroken, match="locked"):
            second.find("anna")
        insert(writing, record)

    with monkeypatch.context() as patch:
        patch.setattr(Writing, "insert", insert_late)
        first.add("anna", DATA, None, CONSENT)
    assert second.find("anna") is not None


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_nothing_behind(
    step: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    shelf = VoiceShelf(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(shelf_module.ShelfBroken, match="No space left"):
            shelf.add("anna", DATA, None, CONSENT)
    assert [path.name for path in folder.iterdir() if "sqlite3" not in path.name] == []
    assert shelf.find("anna") is None
    shelf.add("anna", DATA, None, CONSENT)
