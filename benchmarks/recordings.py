"""A folder of recordings: sound files, with transcripts and tags if it has a manifest.jsonl.

Each line of the manifest is an object with `file` and, where known, `text` and `tags`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from realtime.commands.errors import CommandError
from realtime.commands.talk import read_recording
from realtime.commands.wire_client import WIRE_RATE_HZ, Pcm

SOUND_FILES = (".wav", ".flac", ".ogg", ".mp3")
WINDOW_MS = 10  # resolution of onsets and ends
BELOW_PEAK_DB = 25  # a window this close to the loudest one may be voiced
RUN_WINDOWS = 3  # so many together are voiced; fewer are a click


@dataclass(frozen=True, slots=True)
class Recording:
    """pcm: int16 [n] at WIRE_RATE_HZ."""

    name: str
    text: str
    tags: frozenset[str]
    pcm: Pcm

    @property
    def first_voiced(self) -> int:
        """The sample where the first voiced window begins."""
        return self._voiced()[0]

    @property
    def last_voiced(self) -> int:
        """The sample where the last voiced window ends."""
        return self._voiced()[1]

    def _voiced(self) -> tuple[int, int]:
        window = WIRE_RATE_HZ * WINDOW_MS // 1000
        count = len(self.pcm) // window
        frames = self.pcm[: count * window].astype(np.float64).reshape(count, window)
        power = np.mean(frames**2, axis=1)
        loud = power >= power.max() * 10 ** (-BELOW_PEAK_DB / 10)
        runs = np.flatnonzero(np.convolve(loud, np.ones(RUN_WINDOWS), "valid") >= RUN_WINDOWS)
        if not runs.size:
            return 0, len(self.pcm)
        return int(runs[0]) * window, int(runs[-1] + RUN_WINDOWS) * window


def load(
    folder: Path,
    wanted: frozenset[str] = frozenset(),
    unwanted: frozenset[str] = frozenset(),
    limit: int | None = None,
) -> list[Recording]:
    """Recordings that bear all `wanted` tags and no `unwanted` one, evenly picked up to `limit`.

    Exits with one line if the folder has none.
    """
    rows = _rows(folder)
    chosen = [
        row
        for row in rows
        if wanted <= frozenset(row.get("tags", ())) and not unwanted & set(row.get("tags", ()))
    ]
    if not chosen:
        sys.exit(
            f"{folder}: no recordings{' tagged ' + ', '.join(sorted(wanted)) if wanted else ''}"
        )
    if limit is not None and len(chosen) > limit:
        places = np.linspace(0, len(chosen) - 1, limit).round().astype(int)
        chosen = [chosen[place] for place in places]
    try:
        return [
            Recording(
                row["file"],
                row.get("text") or "",
                frozenset(row.get("tags", ())),
                read_recording(folder / row["file"]),
            )
            for row in chosen
        ]
    except CommandError as error:
        sys.exit(str(error))


def _rows(folder: Path) -> list[dict]:
    manifest = folder / "manifest.jsonl"
    if manifest.exists():
        return [json.loads(line) for line in manifest.read_text().splitlines() if line.strip()]
    if not folder.is_dir():
        sys.exit(f"{folder} is no folder")
    return [{"file": p.name} for p in sorted(folder.iterdir()) if p.suffix in SOUND_FILES]
