"""What is known of each uploaded voice, in SQLite: several servers may share one file.

The file is in WAL mode: whoever reads never waits for whoever writes. Its folder must be on a
local disk, as for every such database. Names, which are ASCII, differ in more than capitals.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BUSY_TIMEOUT_S = 5.0  # writers hold the lock for one small file's way to the disk

_SCHEMA = """
CREATE TABLE IF NOT EXISTS voices (
    name TEXT PRIMARY KEY,
    version TEXT NOT NULL UNIQUE,
    created_at_s INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    transcript TEXT,
    consent TEXT NOT NULL
)
"""
_UNIQUE_NAMES = """
CREATE UNIQUE INDEX IF NOT EXISTS voices_by_name ON voices (name COLLATE NOCASE)
"""
_OF_NAME = "FROM voices WHERE name = ? COLLATE NOCASE"
_COLUMNS = "name, version, created_at_s, duration_ms, transcript, consent"


@dataclass(frozen=True, slots=True)
class VoiceRecord:
    """version: of the recording, never used again for another; it names the file. created_at_s:
    unix time. transcript: what is said in the recording, where that is known. consent: the
    statement that the voice may be copied."""

    name: str
    version: str
    created_at_s: int
    duration_ms: int
    transcript: str | None
    consent: str

    @property
    def file_name(self) -> str:
        return f"{self.version}.wav"


class Records:
    """One database. Blocking; from any thread. Its methods raise sqlite3.Error and OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()  # of the connection that reads
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # that the connection has open

    @property
    def exist(self) -> bool:
        return self._path.exists()

    def create(self) -> None:
        with _connect(self._path) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(_SCHEMA)
            connection.execute(_UNIQUE_NAMES)

    def get(self, name: str) -> VoiceRecord | None:
        rows = self._read(f"SELECT {_COLUMNS} {_OF_NAME}", name)
        return rows[0] if rows else None

    def all(self) -> tuple[VoiceRecord, ...]:
        """In the order of their names."""
        return tuple(self._read(f"SELECT {_COLUMNS} FROM voices ORDER BY name COLLATE NOCASE"))

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Alone among all writers of all servers, until the end; an exception undoes it all."""
        with _connect(self._path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield Writing(connection)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _read(self, statement: str, *values: str) -> list[VoiceRecord]:
        with self._lock:
            try:
                state = os.stat(self._path)
            except FileNotFoundError:
                self._drop()
                return []
            if self._file != (state.st_dev, state.st_ino):  # somebody has put another in its place
                self._drop()
            if self._connection is None:
                self._connection = _open(self._path)
                self._file = (state.st_dev, state.st_ino)
            return [VoiceRecord(*row) for row in self._connection.execute(statement, values)]

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._file = None, None


class Writing:
    """What a writer may do."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, name: str) -> VoiceRecord | None:
        row = self._connection.execute(f"SELECT {_COLUMNS} {_OF_NAME}", (name,)).fetchone()
        return None if row is None else VoiceRecord(*row)

    def count(self) -> int:
        return self._connection.execute("SELECT count(*) FROM voices").fetchone()[0]

    def versions(self) -> frozenset[str]:
        return frozenset(row[0] for row in self._connection.execute("SELECT version FROM voices"))

    def insert(self, record: VoiceRecord) -> None:
        self._connection.execute(
            f"INSERT INTO voices ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
            (
                record.name,
                record.version,
                record.created_at_s,
                record.duration_ms,
                record.transcript,
                record.consent,
            ),
        )

    def delete(self, name: str) -> VoiceRecord | None:
        """The voice that is gone; None: there was none."""
        record = self.get(name)
        self._connection.execute(f"DELETE {_OF_NAME}", (name,))
        return record


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous = FULL")  # a commit that was told survives a power cut
    return connection


@contextmanager
def _connect(path: Path) -> Iterator[sqlite3.Connection]:
    connection = _open(path)
    try:
        yield connection
    finally:
        connection.close()
