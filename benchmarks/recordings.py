"""A folder of recordings: sound files, with transcripts and tags if it has a manifest.jsonl.

Each line of the manifest is an object with `file` and, where known, `text` and `tags`. A recording
with a pause that was put into it has `gap`, its length in s, and `segments`, [start, end] in s of
the speech around it; one that was made of others names them in `derived_from`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """pcm: int16 [n] at WIRE_RATE_HZ. put_pause_ms: [start, end) of a pause that was put in."""

    name: str
    text: str
    tags: frozenset[str]
    pcm: Pcm
    put_pause_ms: tuple[int, int] | None = None
    derived_from: tuple[str, ...] = ()

    @property
    def first_voiced(self) -> int:
        """The sample where the first voiced window begins."""
        return self._voiced()[0]

    @property
    def last_voiced(self) -> int:
        """The sample where the last voiced window ends."""
        return self._voiced()[1]

    def _voiced(self) -> tuple[int, int]:
        spans = voiced_spans(self.pcm)
        return (spans[0][0], spans[-1][1]) if spans else (0, len(self.pcm))


def voiced_spans(pcm: Pcm) -> list[tuple[int, int]]:
    """[start, end) in samples of all runs of voiced windows; what lies between is silence."""
    window = WIRE_RATE_HZ * WINDOW_MS // 1000
    count = len(pcm) // window
    if count < RUN_WINDOWS:
        return []
    frames = pcm[: count * window].astype(np.float64).reshape(count, window)
    power = np.mean(frames**2, axis=1)
    loud = power >= max(power.max(), 1.0) * 10 ** (-BELOW_PEAK_DB / 10)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], loud.astype(np.int8), [0]])))
    return [
        (int(start) * window, int(end) * window)
        for start, end in edges.reshape(-1, 2)
        if end - start >= RUN_WINDOWS
    ]


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
                _put_pause_ms(row),
                tuple(row.get("derived_from", ())),
            )
            for row in chosen
        ]
    except CommandError as error:
        sys.exit(str(error))


def _put_pause_ms(row: dict[str, Any]) -> tuple[int, int] | None:
    """The space between two segments whose length is nearest to the gap's, of equals the last."""
    gap_s, segments = row.get("gap"), row.get("segments") or []
    spaces = [(before[1], after[0]) for before, after in zip(segments, segments[1:], strict=False)]
    if gap_s is None or not spaces:
        return None
    start_s, end_s = min(spaces[::-1], key=lambda space: round(abs(space[1] - space[0] - gap_s), 3))
    return round(start_s * 1000), round(end_s * 1000)


def _rows(folder: Path) -> list[dict[str, Any]]:
    manifest = folder / "manifest.jsonl"
    if manifest.exists():
        return [json.loads(line) for line in manifest.read_text().splitlines() if line.strip()]
    if not folder.is_dir():
        sys.exit(f"{folder} is no folder")
    return [{"file": p.name} for p in sorted(folder.iterdir()) if p.suffix in SOUND_FILES]
