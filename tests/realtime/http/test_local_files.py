"""Recordings on the server's disk: inside the named folders, and nowhere else."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from realtime.http.reception import Refused
from realtime.http.references import local_files
from realtime.http.references.fetching import LARGEST_BYTES, ReferenceFetcher, ReferenceRules
from realtime.http.references.local_files import PathRefused, read_inside


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of recordings, with something secret beside it."""
    inside = tmp_path / "voices"
    (inside / "deep").mkdir(parents=True)
    (inside / "deep" / "a.wav").write_bytes(b"sound")
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "voices-too").mkdir()
    (tmp_path / "voices-too" / "b.wav").write_bytes(b"secret")
    return inside


def code_of(path: str | Path, *folders: Path, largest_bytes: int = 100) -> tuple[str, str]:
    with pytest.raises(PathRefused) as caught:
        read_inside(str(path), folders, largest_bytes)
    return caught.value.code, caught.value.message


def test_a_file_inside_is_read(folder: Path) -> None:
    for path in ("deep/a.wav", "deep/../deep/a.wav", "./deep/a.wav"):
        assert read_inside(f"{folder}/{path}", [Path("/nowhere"), folder], 5) == b"sound"


def test_links_inside_are_followed(folder: Path, tmp_path: Path) -> None:
    (folder / "b.wav").symlink_to("deep/a.wav")
    (tmp_path / "link").symlink_to(folder)
    assert read_inside(str(folder / "b.wav"), [folder], 5) == b"sound"
    assert read_inside(str(tmp_path / "link" / "b.wav"), [folder], 5) == b"sound"
    assert read_inside(str(folder / "b.wav"), [tmp_path / "link"], 5) == b"sound"


def test_without_folders_nothing_is_read(folder: Path) -> None:
    code, message = code_of(folder / "deep" / "a.wav")
    assert code == "path_not_allowed" and "speech.reference_folders" in message


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "deep/../../secret",
        "deep/../../voices-too/b.wav",
        "../voices-too/b.wav",
        "../missing",
        "out",
        "out/b.wav",
        "file-out",
        "loop",
        "a\0b",
        "x" * 300,
        "/".join("x" * 200 for _ in range(30)),
    ],
)
def test_every_way_out_is_closed_in_the_same_words(folder: Path, path: str) -> None:
    (folder / "out").symlink_to("../voices-too")
    (folder / "file-out").symlink_to("../secret")
    (folder / "loop").symlink_to("loop")
    told = code_of(f"{folder}/{path}", folder)
    if told[0] != "path_unreadable":  # a name that cannot be lies inside, if it lies anywhere
        assert told == code_of("/etc/passwd", folder) == code_of("/no/such/file", folder)


@pytest.mark.parametrize("path", ["deep/a.wav", "~/a.wav", "", ".", "file:///etc/passwd"])
def test_a_path_is_absolute(folder: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert code_of(path, folder)[0] == "path_not_allowed"


def test_what_is_no_regular_file_is_not_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for name in ("pipe", "deep", "", "missing.wav"):
        assert code_of(folder / name, folder)[0] == "path_unreadable"
    assert code_of("/dev/zero", Path("/dev"))[0] == "path_unreadable"


def test_a_file_may_not_be_too_large(folder: Path) -> None:
    assert code_of(folder / "deep" / "a.wav", folder, largest_bytes=4)[0] == "reference_too_large"


def test_a_link_that_is_put_in_place_meanwhile_leads_nowhere(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the path and the opening."""
    (tmp_path / "a.wav").write_bytes(b"secret")
    path, opened = folder / "deep" / "a.wav", os.open

    def swap_then_open(*args: object, **options: object) -> int:
        (folder / "deep").rename(folder / "was")
        (folder / "deep").symlink_to("..")
        return opened(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(local_files.os, "open", swap_then_open)
    with pytest.raises(PathRefused):
        read_inside(str(path), [folder], 100)


def test_the_request_s_field_is_named(folder: Path) -> None:
    fetcher = ReferenceFetcher(ReferenceRules(folders=(folder,)))
    assert asyncio.run(fetcher.read_path(str(folder / "deep" / "a.wav"))) == b"sound"
    with pytest.raises(Refused) as caught:
        asyncio.run(fetcher.read_path("/etc/passwd", "references[0].audio_path"))
    error = json.loads(bytes(caught.value.response.body))["error"]
    assert caught.value.response.status_code == 400
    assert (error["code"], error["param"]) == ("path_not_allowed", "references[0].audio_path")
    (folder / "large").write_bytes(bytes(LARGEST_BYTES + 1))
    with pytest.raises(Refused) as caught:
        asyncio.run(fetcher.read_path(str(folder / "large")))
