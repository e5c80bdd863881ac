"""The states of the machine's regions. What each one means is in `table.py`."""

from __future__ import annotations

from enum import Enum


class Lifecycle(Enum):
    OPENING = "opening"
    LIVE = "live"
    PARKED = "parked"  # the socket is lost, the conversation is kept for a while
    DRAINING = "draining"  # the server stops; what is being said may end
    CLOSED = "closed"


class Listening(Enum):
    QUIET = "quiet"
    ONSET_QUIET = "onset, from quiet"  # speech seen, not confirmed
    MURMUR = "murmur"  # a short sound over the agent's speech has ended; its words are awaited
    ONSET_PAUSE = "onset, from a pause"
    TALKING = "talking"
    PAUSE = "pause"  # silence inside a turn, whose end is being judged


class Speaking(Enum):
    IDLE = "idle"
    WAITING = "waiting"  # a response is created and has no output yet
    SPEAKING = "speaking"
    HELD = "held"  # sending stopped while a possible interruption is judged
    HELD_TAIL = "held tail"
    TAIL = "tail"  # all is sent, some still plays


class Drafting(Enum):
    NONE = "none"
    RUNNING = "running"  # a speculative reply that nobody has seen
