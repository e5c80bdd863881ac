"""Whether the voice can take one more session, by what it was measured to do."""

from __future__ import annotations

import math

from pipelines.ports import Capacity

# An assistant speaks for about a third of a conversation; this much of a listener is expected of a
# session that is too new to show in what the voice delivers.
SHARE = 1 / 3
NEW_S = 30.0  # for so long: the window over which a stage tells what it delivers
# How far beyond the average number of speakers there must be room: in one of twenty moments more of
# them speak (Z of a normal distribution), and then somebody waits for another to end.
SURE_Z = 1.64
REOPEN = 0.9  # of the capacity: who was refused must not come in and be refused in turn


class Headroom:
    """Sessions mostly listen, so what they all take together counts, not how many there are.

    How many of them speak at one moment is binomial. Replies that begin beyond what there is are
    nobody's refusal: they wait for a slot.
    """

    def __init__(self) -> None:
        self._is_spent = False

    def has_room(self, capacity: Capacity | None, sessions: int, new: int) -> bool:
        """sessions: that live. new: of these, those that have lived for less than `NEW_S`.

        Where nothing was measured there is room; an empty server always has some, and so has one
        that could speak to all of them at once.
        """
        if capacity is None or sessions + 1 <= max(1.0, capacity.streams):
            self._is_spent = False
            return True
        expected = capacity.delivers + SHARE * (new + 1)
        most = capacity.streams * (REOPEN if self._is_spent else 1.0)
        crowd = expected + SURE_Z * math.sqrt(expected * (1 - SHARE))
        self._is_spent = crowd > most
        return not self._is_spent
