"""The local store: what is missing or damaged is told, cheaply, with the command that helps."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from pipelines.weights import (
    FileState,
    ModelCorrupt,
    ModelMissing,
    resolve,
    resolve_folder,
    status,
    store,
    verify,
)
from pipelines.weights.catalogue import GROUPS, WHISPER_BASE
from tests.pipelines.wheels import OTHER, PARTS, TOY, WHOLE, put, use_toys


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_toys(monkeypatch, tmp_path)


def refuse_to_hash(path: Path) -> str:
    raise AssertionError(f"{path} was hashed")


def test_a_missing_file_names_itself_and_the_command() -> None:
    with pytest.raises(ModelMissing, match="toy/model.bin.*`parley models fetch toy`"):
        resolve(TOY)


def test_a_whole_file_is_found_and_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(TOY, WHOLE)
    assert resolve(TOY) == path
    monkeypatch.setattr("pipelines.weights.local_store.hash_of", refuse_to_hash)
    assert resolve(TOY) == path


def test_a_truncated_file_is_caught_without_hashing(monkeypatch: pytest.MonkeyPatch) -> None:
    put(TOY, WHOLE[:-1])
    monkeypatch.setattr("pipelines.weights.local_store.hash_of", refuse_to_hash)
    with pytest.raises(ModelCorrupt, match=rf"has {len(WHOLE) - 1} bytes instead of {len(WHOLE)}"):
        resolve(TOY)


def test_a_changed_file_of_the_same_size_is_hashed_again() -> None:
    path = put(TOY, WHOLE)
    resolve(TOY)
    path.write_bytes(WHOLE[::-1])
    os.utime(path, ns=(0, 0))
    with pytest.raises(ModelCorrupt, match="is damaged.*`parley models fetch toy`"):
        resolve(TOY)


def test_a_seal_that_is_no_json_is_not_trusted() -> None:
    path = put(TOY, WHOLE)
    path.with_name("model.bin.sha256").write_text("{", encoding="utf-8")
    assert resolve(TOY) == path
    assert "mtime_ns" in path.with_name("model.bin.sha256").read_text(encoding="utf-8")


def test_verify_finds_damage_that_leaves_size_and_time() -> None:
    path = put(TOY, WHOLE)
    put(OTHER, PARTS[1])
    resolve(TOY)
    before = path.stat()
    path.write_bytes(WHOLE[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert resolve(TOY) == path  # the seal fits: a start does not hash
    [problem] = verify("toy")
    assert "model.bin is damaged" in problem
    assert "`parley models fetch toy`" in problem
    with pytest.raises(ModelCorrupt):
        resolve(TOY)


def test_verify_names_what_is_missing() -> None:
    put(TOY, WHOLE)
    [problem] = verify("toy")
    assert "other.bin is missing" in problem


def test_status_has_a_row_for_every_file() -> None:
    put(TOY, WHOLE)
    put(OTHER, b"short")
    assert [(row.path.name, row.state) for row in status()] == [
        ("model.bin", FileState.PRESENT),
        ("other.bin", FileState.CORRUPT),
    ]


def test_an_unknown_group_names_those_there_are() -> None:
    with pytest.raises(ValueError, match="no model group 'toys'; there are: toy"):
        verify("toys")


def test_an_explicit_path_is_taken_as_it_is(tmp_path: Path) -> None:
    mine = tmp_path / "mine.bin"
    with pytest.raises(ModelMissing, match=re.escape(str(mine))):
        resolve(TOY, mine)
    mine.write_bytes(b"another model")
    assert resolve(TOY, mine) == mine


def test_files_of_one_folder_resolve_to_it(tmp_path: Path) -> None:
    for name in ("model.bin", "other.bin"):
        (tmp_path / name).touch()
    assert resolve_folder((TOY, OTHER), tmp_path) == tmp_path
    with pytest.raises(ModelMissing):
        resolve_folder((TOY, OTHER))


def test_the_store_has_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PARLEY_MODELS")
    assert store() == Path.home() / ".cache" / "parley" / "models"


def test_the_catalogue_is_well_formed() -> None:
    files = [file for group in GROUPS.values() for file in group]
    assert len({file.path for file in files}) == len(files)
    for file in files:
        assert re.fullmatch("[0-9a-f]{64}", file.sha256), file.path
        assert file.size_bytes > 0
        assert all(re.fullmatch(r"[\w-]+==[\w.]+", part.requirement) for part in file.parts)
    assert len({file.path.rpartition("/")[0] for file in WHISPER_BASE}) == 1
