"""A folder of uploaded voices, which survives crashes and may be shared by several servers.

A voice is a record and the file that it names. The file is whole on the disk before the record is
committed, and is removed after the record: whatever is interrupted, and wherever, leaves a whole
voice or none, and at most a file that no record names. Those are swept when the shelf is opened.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.types import VoiceSample
from realtime.voices.names import VoiceRefused, check_name, is_name
from realtime.voices.recording import read_recording
from realtime.voices.records import Records, VoiceRecord, Writing

log = logging.getLogger(__name__)

MOST_VOICES = 1000  # 1.5 GB of recordings
MAX_TRANSCRIPT_CHARACTERS = 4000  # half a minute of the fastest speech several times over
MAX_CONSENT_CHARACTERS = 4000
MOST_CACHED = 32  # recordings in memory, 1.5 MB each

RECORDS_FILE = "voices.sqlite3"
UNFINISHED_SUFFIX = ".unfinished"  # of files that are being written
VERSION_BYTES = 16  # no two recordings ever share one by chance
# The folder may hold files that are the operator's: whatever else is in it is left alone.
_OWN_FILE = re.compile(
    rf"(?P<version>[0-9a-f]{{{2 * VERSION_BYTES}}})\.wav(?P<rest>{re.escape(UNFINISHED_SUFFIX)})?"
)
_DENIALS = frozenset({"false", "no", "none", "null", "off", "0"})


class ShelfBroken(Exception):
    """The folder or its database cannot be used. Its message names them: it is for operators."""


class VoiceShelf:
    """Blocking; from any thread. Every method raises ShelfBroken where the disk fails.

    Names that differ in capitals alone are one name: of what is asked for, and of what is kept.
    folder: made when the first voice is added. now_s: unix time.
    """

    def __init__(
        self,
        folder: Path,
        *,
        most_voices: int = MOST_VOICES,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._most_voices = most_voices
        self._now_s = now_s
        self._records = Records(folder / RECORDS_FILE)
        self._lock = threading.Lock()  # of what follows
        self._is_swept = False
        self._cache: OrderedDict[str, tuple[str, VoiceSample]] = OrderedDict()

    def add(self, name: str, data: bytes, transcript: str | None, consent: str) -> VoiceRecord:
        """Keep a recording of 1 to 30 s. Raises VoiceRefused."""
        check_name(name)
        said = _checked_transcript(transcript)
        statement = _checked_consent(consent)
        recording = read_recording(data)
        record = VoiceRecord(
            name=name,
            version=secrets.token_hex(VERSION_BYTES),
            created_at_s=int(self._now_s()),
            duration_ms=recording.duration_ms,
            transcript=said,
            consent=statement,
        )
        with self._minding_the_disk():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._records.create()
            self._sweep_once()
            with self._records.writing() as writing:
                self._check_room(writing, name)
                with self._undone_on_failure(record.file_name):
                    self._write(record.file_name, recording.wav)
                    writing.insert(record)
        return record

    def find(self, name: str) -> VoiceSample | None:
        """The same object as long as the voice is the same one."""
        if not is_name(name):
            return None
        for _ in range(2):  # it may be replaced between a look at its record and at its file
            record = self.get(name)
            if record is None:
                with self._lock:
                    self._cache.pop(name.casefold(), None)
                return None
            sample = self._cached(record) or self._load(record)
            if sample is not None:
                return sample
        log.warning("the recording of voice %s is missing in %s", name, self._folder)
        return None

    def get(self, name: str) -> VoiceRecord | None:
        with self._minding_the_disk():
            self._sweep_once()
            return self._records.get(name) if is_name(name) else None

    def list(self) -> tuple[VoiceRecord, ...]:
        """In the order of their names."""
        with self._minding_the_disk():
            self._sweep_once()
            return self._records.all()

    def delete(self, name: str) -> VoiceRecord | None:
        """The voice that is gone; None: there was none. Requests that speak with it go on."""
        with self._minding_the_disk():
            self._sweep_once()
            if not self._records.exist or not is_name(name):
                return None
            with self._records.writing() as writing:
                record = writing.delete(name)
            if record is not None:
                (self._folder / record.file_name).unlink(missing_ok=True)
        return record

    def close(self) -> None:
        self._records.close()

    # ---- the disk ----------------------------------------------------------------------------

    @contextmanager
    def _minding_the_disk(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise ShelfBroken(
                f"The folder of uploaded voices, {self._folder}, cannot be used: {error}; see to "
                "its rights and its room, or name another (speech.voices_dir)."
            ) from error

    def _sweep_once(self) -> None:
        """Remove what interrupted servers have left; never what another is about to commit."""
        with self._lock:
            if self._is_swept or not self._records.exist:
                return
            self._records.create()  # whoever made the file may have been interrupted
            with self._records.writing() as writing:  # nobody else writes files meanwhile
                known = writing.versions()
                for path in self._folder.iterdir():
                    own = _OWN_FILE.fullmatch(path.name)
                    if own and (own["rest"] or own["version"] not in known) and path.is_file():
                        path.unlink(missing_ok=True)
            self._is_swept = True

    def _check_room(self, writing: Writing, name: str) -> None:
        if (there := writing.get(name)) is not None:
            raise VoiceRefused(
                "name",
                "voice_exists",
                f"There is a voice called '{there.name}' already: delete it first, or choose "
                "another name.",
            )
        if writing.count() >= self._most_voices:
            raise VoiceRefused(
                "name",
                "too_many_voices",
                f"This server keeps {self._most_voices} uploaded voices at most: delete one first.",
            )

    def _write(self, file_name: str, data: bytes) -> None:
        """The whole file is on the disk under its name when this returns."""
        unfinished = self._folder / (file_name + UNFINISHED_SUFFIX)
        with open(unfinished, "xb", opener=_open_private) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, self._folder / file_name)
        _sync_folder(self._folder)

    @contextmanager
    def _undone_on_failure(self, file_name: str) -> Iterator[None]:
        """Before the commit only: after it, the file belongs to a voice."""
        try:
            yield
        except BaseException:
            for name in (file_name, file_name + UNFINISHED_SUFFIX):
                (self._folder / name).unlink(missing_ok=True)
            raise

    def _load(self, record: VoiceRecord) -> VoiceSample | None:
        with self._minding_the_disk():
            try:
                data = (self._folder / record.file_name).read_bytes()
            except FileNotFoundError:
                return None
        sample = VoiceSample(data, record.transcript)
        with self._lock:
            key = record.name.casefold()
            self._cache[key] = (record.version, sample)
            self._cache.move_to_end(key)
            while len(self._cache) > MOST_CACHED:
                self._cache.popitem(last=False)
        return sample

    def _cached(self, record: VoiceRecord) -> VoiceSample | None:
        with self._lock:
            key = record.name.casefold()
            version, sample = self._cache.get(key, ("", None))
            if version != record.version:
                return None
            self._cache.move_to_end(key)
            return sample


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)  # a voice is personal


def _sync_folder(folder: Path) -> None:
    """A name is on the disk when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _checked_transcript(transcript: str | None) -> str | None:
    text = (transcript or "").strip()
    if len(text) > MAX_TRANSCRIPT_CHARACTERS:
        raise VoiceRefused(
            "transcript",
            "transcript_invalid",
            f"Invalid 'transcript': expected at most {MAX_TRANSCRIPT_CHARACTERS} characters.",
        )
    return text or None


def _checked_consent(consent: str) -> str:
    statement = consent.strip()
    if not statement or statement.lower() in _DENIALS:
        raise VoiceRefused(
            "consent",
            "consent_required",
            "Missing 'consent': state that the speaker agrees to have this voice copied, for "
            "example 'I am Ada Byron and agree that my voice is copied.'.",
        )
    if len(statement) > MAX_CONSENT_CHARACTERS:
        raise VoiceRefused(
            "consent",
            "consent_required",
            f"Invalid 'consent': expected at most {MAX_CONSENT_CHARACTERS} characters.",
        )
    return statement
