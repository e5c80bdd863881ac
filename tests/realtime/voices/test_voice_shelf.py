"""Uploaded voices: kept, found, listed, deleted, and shared by servers."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from realtime.voices.names import OPENAI_VOICES, VoiceRefused
from realtime.voices.records import VoiceRecord
from realtime.voices.shelf import MOST_CACHED, ShelfBroken, VoiceShelf
from tests.realtime.voices.recordings import recording

CONSENT = "I agree that my voice is copied."
DATA = recording(1.2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a" / "voices"


def add(shelf: VoiceShelf, name: str = "anna", transcript: str | None = "Hello.") -> VoiceRecord:
    return shelf.add(name, DATA, transcript, CONSENT)


def test_a_voice_survives_a_restart(folder: Path) -> None:
    shelf = VoiceShelf(folder, now_s=lambda: 1_900_000_000.9)
    record = add(shelf)
    assert (record.name, record.created_at_s, record.duration_ms) == ("anna", 1_900_000_000, 1200)
    shelf.close()
    again = VoiceShelf(folder)
    assert again.list() == (record,) and again.get("anna") == record
    sample = again.find("anna")
    assert sample is not None and sample.transcript == "Hello."
    assert sample.data.startswith(b"RIFF")
    assert record.consent == CONSENT


def test_nothing_is_made_before_the_first_voice(folder: Path) -> None:
    shelf = VoiceShelf(folder)
    assert shelf.find("anna") is None and shelf.list() == () and not shelf.delete("anna")
    assert not folder.parent.exists()
    add(shelf)
    assert folder.stat().st_mode & 0o077 == 0  # a voice is personal


def test_it_is_found_without_reading_its_file_again(folder: Path) -> None:
    shelf = VoiceShelf(folder)
    add(shelf)
    sample = shelf.find("anna")
    assert sample is not None and shelf.find("anna") is sample


def test_memory_holds_only_some(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = VoiceShelf(folder)
    for number in range(MOST_CACHED + 3):
        add(shelf, f"v{number}")
        shelf.find(f"v{number}")
    assert len(shelf._cache) == MOST_CACHED
    assert shelf.find("v0") is not None


def test_a_deleted_voice_is_gone_with_its_file(folder: Path) -> None:
    shelf = VoiceShelf(folder)
    add(shelf)
    assert shelf.find("anna")
    assert shelf.delete("anna") and not shelf.delete("anna")
    assert shelf.find("anna") is None and shelf.list() == ()
    assert list(folder.glob("*.wav")) == []


def test_files_of_others_are_left_alone(folder: Path) -> None:
    """The folder may be one where an operator keeps recordings, too."""
    own = ("0" * 32 + ".wav", "f" * 32 + ".wav.unfinished")
    others = (
        "ada.wav",
        "A" * 32 + ".wav",
        "0" * 31 + ".wav",
        "mail.unfinished",
        "x.wav.unfinished",
    )
    folder.mkdir(parents=True)
    for name in own + others:
        (folder / name).write_bytes(b"mine")
    record = add(VoiceShelf(folder))
    assert VoiceShelf(folder).find("anna") is not None
    left = {path.name for path in folder.iterdir() if "sqlite3" not in path.name}
    assert left == {record.file_name, *others}


def test_two_servers_see_each_other_s_voices_at_once(folder: Path) -> None:
    one, two = VoiceShelf(folder), VoiceShelf(folder)
    assert two.find("anna") is None
    add(one, transcript="First.")
    assert (found := two.find("anna")) is not None and found.transcript == "First."
    assert two.delete("anna") and one.find("anna") is None
    add(two, transcript="Second.")
    assert (found := one.find("anna")) is not None and found.transcript == "Second."
    with pytest.raises(VoiceRefused) as caught:
        add(one)
    assert (caught.value.field, caught.value.code) == ("name", "voice_exists")


def test_names_that_differ_in_capitals_alone_are_one(folder: Path) -> None:
    one, two = VoiceShelf(folder), VoiceShelf(folder)
    record = add(one)
    with pytest.raises(VoiceRefused, match="'anna' already") as caught:
        add(two, "ANNA")
    assert caught.value.code == "voice_exists"
    assert two.get("Anna") == record
    assert (sample := two.find("Anna")) is not None and two.find("anna") is sample
    assert two.delete("AnnA") == record and one.list() == ()
    assert one.find("anna") is None
    add(two, "ANNA")
    assert (found := one.get("anna")) is not None and found.name == "ANNA"


def test_many_threads_of_two_servers_at_once(folder: Path) -> None:
    """All begin together with no folder yet; one name is wanted by all of them."""
    shelves, start = (VoiceShelf(folder), VoiceShelf(folder)), threading.Barrier(6)

    def work(number: int) -> bool:
        shelf, other = shelves[number % 2], shelves[(number + 1) % 2]
        start.wait(10)
        add(shelf, f"own-{number}")
        assert other.find(f"own-{number}") is not None
        try:
            add(shelf, "wanted" if number % 2 else "Wanted")
        except VoiceRefused as refused:
            assert refused.code == "voice_exists"
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(work, range(6)))
    assert won.count(True) == 1
    names = ["own-0", "own-1", "own-2", "own-3", "own-4", "own-5", "wanted"]
    assert [record.name.lower() for record in shelves[0].list()] == names
    assert len(list(folder.glob("*.wav"))) == 7


def test_a_shelf_is_full_at_some_time(folder: Path) -> None:
    shelf = VoiceShelf(folder, most_voices=2)
    add(shelf, "a")
    add(shelf, "b")
    with pytest.raises(VoiceRefused) as caught:
        add(shelf, "c")
    assert caught.value.code == "too_many_voices"
    assert shelf.delete("a")
    add(shelf, "c")


@pytest.mark.parametrize("name", ["", "a" * 65, "a b", "a/b", "..", "a.wav", "ä", "a\n", "\0"])
def test_a_name_is_a_word(folder: Path, name: str) -> None:
    shelf = VoiceShelf(folder)
    with pytest.raises(VoiceRefused) as caught:
        add(shelf, name)
    assert (caught.value.field, caught.value.code) == ("name", "voice_name_invalid")
    assert shelf.find(name) is None and shelf.get(name) is None and not shelf.delete(name)


@pytest.mark.parametrize("name", sorted(OPENAI_VOICES)[:2] + ["Alloy", "default", "DEFAULT"])
def test_names_that_clients_send_unasked_are_no_voice_s(folder: Path, name: str) -> None:
    with pytest.raises(VoiceRefused) as caught:
        add(VoiceShelf(folder), name)
    assert caught.value.code == "voice_name_taken"


@pytest.mark.parametrize("consent", ["", "  ", "false", "No", "x" * 4001])
def test_without_consent_nothing_is_kept(folder: Path, consent: str) -> None:
    with pytest.raises(VoiceRefused) as caught:
        VoiceShelf(folder).add("anna", DATA, None, consent)
    assert (caught.value.field, caught.value.code) == ("consent", "consent_required")
    assert not folder.exists()


def test_a_transcript_may_be_left_out_but_has_an_end(folder: Path) -> None:
    shelf = VoiceShelf(folder)
    assert add(shelf, transcript=" ").transcript is None
    with pytest.raises(VoiceRefused) as caught:
        add(shelf, "b", transcript="x" * 4001)
    assert caught.value.field == "transcript"


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ShelfBroken, match=r"file.*speech\.voices_dir"):
        add(VoiceShelf(tmp_path / "file"))
    (tmp_path / "voices.sqlite3").write_bytes(b"no database, but as long as one" * 100)
    with pytest.raises(ShelfBroken, match="not a database"):
        VoiceShelf(tmp_path).find("anna")


def test_a_folder_that_was_replaced_is_read_anew(folder: Path) -> None:
    shelf = VoiceShelf(folder)
    add(shelf)
    assert shelf.find("anna")
    folder.rename(folder.with_name("old"))
    assert shelf.find("anna") is None
    add(VoiceShelf(folder), "berta")
    assert shelf.find("berta") is not None and shelf.find("anna") is None


def test_a_lost_recording_is_no_voice(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    shelf = VoiceShelf(folder)
    record = add(shelf)
    (folder / record.file_name).unlink()
    assert shelf.find("anna") is None
    assert "anna is missing" in caplog.text
