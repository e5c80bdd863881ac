"""Feeds as calls of the streaming decoder, whose shapes are few and fixed, and sound from calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.higgs.codec.stream import NEVER_FRAMES
from pipelines.higgs.codec.stretches import Feed
from pipelines.higgs.config import FRAME_SAMPLES
from pipelines.types import Samples

NUMBERS = 4  # of a row of a call, behind its codes: slot, start, count, end


@dataclass(frozen=True, slots=True)
class Piece:
    """`count` frames of a feed, from its frame `first` on; at most a call's `frames`."""

    feed: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Launch:
    """One call of the decoder: [rows, frames], of which the pieces fill as much as they do."""

    rows: int
    frames: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Shapes:
    """The shapes of calls that there are: [rows, frames] up to `most` frames in all.

    rows, frames: ascending; each frame count goes with one row at least.
    call_frames: a call costs what so many frames more in it would. Feeds of different length share
        a call where the frames that pad the shorter ones cost less than another call.
    """

    rows: tuple[int, ...]
    frames: tuple[int, ...]
    most: int
    call_frames: int

    def all(self) -> list[tuple[int, int]]:
        """The largest first, so that what is recorded later fits into its memory."""
        shapes = [(rows, frames) for rows in self.rows for frames in self.frames]
        fitting = [shape for shape in shapes if shape[0] * shape[1] <= self.most]
        return sorted(fitting, key=lambda shape: -shape[0] * shape[1])

    def launches(self, lengths: Sequence[int]) -> list[Launch]:
        """Calls, in order, that feed so many frames of each feed."""
        launches: list[Launch] = []
        done = [0] * len(lengths)
        while True:
            left = [(length - done[feed], feed) for feed, length in enumerate(lengths)]
            pieces = [
                Piece(feed, done[feed], min(frames, self.frames[-1]))
                for frames, feed in sorted(left, key=lambda pair: -pair[0])
                if frames
            ]
            if not pieces:
                return launches
            for piece in pieces:
                done[piece.feed] += piece.count
            launches += self._round(pieces)

    def _round(self, pieces: list[Piece]) -> list[Launch]:
        """Calls for one piece of each feed, the longest first."""
        launches: list[Launch] = []
        first = 0
        while first < len(pieces):
            frames = _bucket(self.frames, pieces[first].count)
            limit = max(rows for rows in self.rows if rows * frames <= self.most)
            group = pieces[first : first + limit]
            padding = 0
            for index, piece in enumerate(group):
                padding += frames - _bucket(self.frames, piece.count)
                if padding > self.call_frames:
                    group = group[:index]
                    break
            launches.append(Launch(_bucket(self.rows, len(group)), frames, tuple(group)))
            first += len(group)
        return launches


def _bucket(sizes: tuple[int, ...], wanted: int) -> int:
    return next(size for size in sizes if size >= wanted)


def fill_call(
    numbers: npt.NDArray[np.int64], launch: Launch, feeds: Sequence[Feed], slots: int
) -> None:
    """Write what a call is to do: [rows, frames * codebooks + NUMBERS].

    Rows that stand for no slot work on the one behind the last, and keep nothing of it.
    """
    numbers.fill(0)
    heads = np.full((len(numbers), NUMBERS), (slots, 0, 0, NEVER_FRAMES))
    for index, piece in enumerate(launch.pieces):
        feed = feeds[piece.feed]
        codes = feed.codes[piece.first : piece.first + piece.count]
        numbers[index, : codes.size] = codes.reshape(-1)
        heads[index] = (feed.slot, feed.start + piece.first, piece.count, feed.end)
    numbers[:, -NUMBERS:] = heads


def join_sounds(
    feeds: Sequence[Feed], made: Sequence[tuple[tuple[Piece, ...], Samples]]
) -> list[Samples]:
    """What is due of each feed, in memory of its own, from each call's pieces and their rows."""
    sounds = [np.empty(feed.due, np.float32) for feed in feeds]
    for pieces, rows in made:
        for piece, row in zip(pieces, rows, strict=True):
            feed, sound = feeds[piece.feed], sounds[piece.feed]
            begin = piece.first * FRAME_SAMPLES - feed.skip  # where the row's first sample goes
            first = max(begin, 0)
            last = min(begin + piece.count * FRAME_SAMPLES, feed.due)
            if first < last:
                sound[first:last] = row[first - begin : last - begin]
    return sounds
