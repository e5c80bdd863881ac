"""Every transition of the machine, as data: each region's every state against every signal.

A cell is a Move (an action of the region, and where it may lead), an Ignore (and why) or a Reject
(the error that the client gets). The regions read their tables; the tests check that none of the
pairs is missing and that every reachable cell is reached; `draw()` makes the README's diagram.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from realtime.session.states import Drafting, Lifecycle, Listening, Speaking


@dataclass(frozen=True, slots=True)
class Move:
    """`action` is a method of the region that returns the next state, one of `to`."""

    action: str
    to: tuple[Enum, ...]


@dataclass(frozen=True, slots=True)
class Ignore:
    """Nothing happens. `never`: no order of events leads here; kept so that nothing is unsaid."""

    reason: str
    never: bool = False


@dataclass(frozen=True, slots=True)
class Reject:
    """The client gets an error with this code."""

    code: str


Cell = Move | Ignore | Reject


class Hear(Enum):
    """Signals to the listening region."""

    VOICE_UP = "voice up"
    VOICE_DOWN = "voice down"
    CONFIRMED = "confirmed"
    HEARD = "words heard"
    JUDGED = "judged"
    SILENCE_OVER = "silence over"  # server_vad's own silence
    WAITED = "waited"  # the patience of semantic_vad is over
    TOO_LONG = "too long"
    AUDIO_GAP = "audio gap"
    COMMIT = "client commits"
    CLEAR = "client clears"
    DETECTION = "detection changes"
    DISCONNECT = "disconnect"


class Say(Enum):
    """Signals to the speaking region."""

    COMMIT = "turn committed"
    CREATE = "client creates"
    FIRST_OUTPUT = "first output"
    HOLD = "hold"
    RELEASE = "release"
    INTERRUPT = "interrupt"
    GENERATED = "generated"
    FAILED = "stage failed"
    DRAINED = "drained"
    PLAYED = "playback ends"
    STARVED = "starved"
    CANCEL = "client cancels"
    DISCONNECT = "disconnect"


class Guess(Enum):
    """Signals to the drafting region."""

    START = "start"
    ABORT = "abort"
    STALE = "context changed"
    TAKE = "turn committed"
    FAILED = "stage failed"


class Live(Enum):
    """Signals to the lifecycle."""

    OPENED = "opened"
    LOST = "lost, resumable"
    GONE = "gone"
    BACK = "back"
    SHUT_DOWN = "shut down"
    SPOKEN_OUT = "nothing left to say"
    EXPIRED = "expired"


_VOICED = Ignore("the voice is up already", never=True)
_SILENT = Ignore("the voice is down already", never=True)
_NO_PAUSE = Ignore("only a pause is waited out", never=True)
_NOT_CONFIRMABLE = Ignore("only an onset is confirmed", never=True)
_NO_TURN_HEARD = Ignore("no turn is listened to", never=True)
_LATE_VERDICT = Ignore("a question dies with its pause; late answers match none", never=True)

L = Listening
LISTENING: dict[tuple[Listening, Hear], Cell] = {
    (L.QUIET, Hear.VOICE_UP): Move("begin_onset", (L.ONSET_QUIET,)),
    (L.QUIET, Hear.VOICE_DOWN): _SILENT,
    (L.QUIET, Hear.CONFIRMED): _NOT_CONFIRMABLE,
    (L.QUIET, Hear.HEARD): _NO_TURN_HEARD,
    (L.QUIET, Hear.JUDGED): _LATE_VERDICT,
    (L.QUIET, Hear.SILENCE_OVER): _NO_PAUSE,
    (L.QUIET, Hear.WAITED): _NO_PAUSE,
    (L.QUIET, Hear.TOO_LONG): Ignore("no turn to be long", never=True),
    (L.QUIET, Hear.AUDIO_GAP): Ignore("silence may be sent as nothing", never=True),
    (L.QUIET, Hear.COMMIT): Move("commit_buffer", (L.QUIET,)),
    (L.QUIET, Hear.CLEAR): Move("clear_buffer", (L.QUIET,)),
    (L.QUIET, Hear.DETECTION): Move("change_detection", (L.QUIET,)),
    (L.QUIET, Hear.DISCONNECT): Move("forget", (L.QUIET,)),
    (L.ONSET_QUIET, Hear.VOICE_UP): _VOICED,
    (L.ONSET_QUIET, Hear.VOICE_DOWN): Move("end_onset", (L.QUIET, L.MURMUR)),
    (L.ONSET_QUIET, Hear.CONFIRMED): Move("begin_turn", (L.TALKING,)),
    (L.ONSET_QUIET, Hear.HEARD): Move("weigh_glimpse", (L.ONSET_QUIET, L.TALKING)),
    (L.ONSET_QUIET, Hear.JUDGED): _LATE_VERDICT,
    (L.ONSET_QUIET, Hear.SILENCE_OVER): _NO_PAUSE,
    (L.ONSET_QUIET, Hear.WAITED): _NO_PAUSE,
    (L.ONSET_QUIET, Hear.TOO_LONG): Ignore("an onset is short", never=True),
    (L.ONSET_QUIET, Hear.AUDIO_GAP): Move("end_onset", (L.QUIET, L.MURMUR)),
    (L.ONSET_QUIET, Hear.COMMIT): Move("commit_buffer", (L.ONSET_QUIET,)),
    (L.ONSET_QUIET, Hear.CLEAR): Move("clear_buffer", (L.ONSET_QUIET,)),
    (L.ONSET_QUIET, Hear.DETECTION): Move("change_detection", (L.ONSET_QUIET, L.QUIET)),
    (L.ONSET_QUIET, Hear.DISCONNECT): Move("forget", (L.QUIET,)),
    (L.MURMUR, Hear.VOICE_UP): Move("resume_onset", (L.ONSET_QUIET,)),
    (L.MURMUR, Hear.VOICE_DOWN): _SILENT,
    (L.MURMUR, Hear.CONFIRMED): _NOT_CONFIRMABLE,
    (L.MURMUR, Hear.HEARD): Move("weigh_murmur", (L.MURMUR, L.QUIET, L.PAUSE)),
    (L.MURMUR, Hear.JUDGED): _LATE_VERDICT,
    (L.MURMUR, Hear.SILENCE_OVER): _NO_PAUSE,
    (L.MURMUR, Hear.WAITED): _NO_PAUSE,
    (L.MURMUR, Hear.TOO_LONG): Ignore("a murmur is short", never=True),
    (L.MURMUR, Hear.AUDIO_GAP): Ignore("it has been heard whole"),
    (L.MURMUR, Hear.COMMIT): Move("commit_buffer", (L.QUIET,)),
    (L.MURMUR, Hear.CLEAR): Move("clear_buffer", (L.QUIET,)),
    (L.MURMUR, Hear.DETECTION): Move("change_detection", (L.MURMUR, L.QUIET)),
    (L.MURMUR, Hear.DISCONNECT): Move("forget", (L.QUIET,)),
    (L.TALKING, Hear.VOICE_UP): _VOICED,
    (L.TALKING, Hear.VOICE_DOWN): Move("begin_pause", (L.PAUSE,)),
    (L.TALKING, Hear.CONFIRMED): _NOT_CONFIRMABLE,
    (L.TALKING, Hear.HEARD): Move("read_ahead", (L.TALKING,)),
    (L.TALKING, Hear.JUDGED): _LATE_VERDICT,
    (L.TALKING, Hear.SILENCE_OVER): _NO_PAUSE,
    (L.TALKING, Hear.WAITED): _NO_PAUSE,
    (L.TALKING, Hear.TOO_LONG): Move("split_turn", (L.TALKING,)),
    (L.TALKING, Hear.AUDIO_GAP): Move("begin_pause", (L.PAUSE,)),
    (L.TALKING, Hear.COMMIT): Move("commit_buffer", (L.ONSET_QUIET,)),
    (L.TALKING, Hear.CLEAR): Move("clear_buffer", (L.ONSET_QUIET,)),
    (L.TALKING, Hear.DETECTION): Move("change_detection", (L.TALKING, L.QUIET)),
    (L.TALKING, Hear.DISCONNECT): Move("forget", (L.QUIET,)),
    (L.PAUSE, Hear.VOICE_UP): Move("suspect_speech", (L.ONSET_PAUSE,)),
    (L.PAUSE, Hear.VOICE_DOWN): _SILENT,
    (L.PAUSE, Hear.CONFIRMED): _NOT_CONFIRMABLE,
    (L.PAUSE, Hear.HEARD): Move("consider_draft", (L.PAUSE,)),
    (L.PAUSE, Hear.JUDGED): Move("weigh", (L.PAUSE, L.QUIET)),
    (L.PAUSE, Hear.SILENCE_OVER): Move("end_turn", (L.QUIET,)),
    (L.PAUSE, Hear.WAITED): Move("end_turn", (L.QUIET,)),
    (L.PAUSE, Hear.TOO_LONG): Ignore("a pause ends by itself", never=True),
    (L.PAUSE, Hear.AUDIO_GAP): Move("end_turn", (L.QUIET,)),
    (L.PAUSE, Hear.COMMIT): Move("commit_buffer", (L.QUIET,)),
    (L.PAUSE, Hear.CLEAR): Move("clear_buffer", (L.QUIET,)),
    (L.PAUSE, Hear.DETECTION): Move("change_detection", (L.PAUSE, L.QUIET)),
    (L.PAUSE, Hear.DISCONNECT): Move("forget", (L.QUIET,)),
    (L.ONSET_PAUSE, Hear.VOICE_UP): _VOICED,
    (L.ONSET_PAUSE, Hear.VOICE_DOWN): Move("fall_back", (L.PAUSE,)),
    (L.ONSET_PAUSE, Hear.CONFIRMED): Move("resume_turn", (L.TALKING,)),
    (L.ONSET_PAUSE, Hear.HEARD): Ignore("a draft waits until the pause goes on"),
    (L.ONSET_PAUSE, Hear.JUDGED): Move("remember_verdict", (L.ONSET_PAUSE,)),
    (L.ONSET_PAUSE, Hear.SILENCE_OVER): Ignore("the silence is in doubt", never=True),
    (L.ONSET_PAUSE, Hear.WAITED): Ignore("the silence is in doubt", never=True),
    (L.ONSET_PAUSE, Hear.TOO_LONG): Ignore("an onset is short", never=True),
    (L.ONSET_PAUSE, Hear.AUDIO_GAP): Move("fall_back", (L.PAUSE,)),
    (L.ONSET_PAUSE, Hear.COMMIT): Move("commit_buffer", (L.ONSET_QUIET,)),
    (L.ONSET_PAUSE, Hear.CLEAR): Move("clear_buffer", (L.ONSET_QUIET,)),
    (L.ONSET_PAUSE, Hear.DETECTION): Move("change_detection", (L.ONSET_PAUSE, L.QUIET)),
    (L.ONSET_PAUSE, Hear.DISCONNECT): Move("forget", (L.QUIET,)),
}

_NOT_ACTIVE = Reject("response_cancel_not_active")
_ONE_AT_A_TIME = Reject("conversation_already_has_active_response")
_NOTHING_SOUNDS = Ignore("nothing sounds that could be stopped")
_OF_NO_RESPONSE = Ignore("outputs belong to a running response", never=True)
_FIRST_WAS = Ignore("the first output was before", never=True)
_HELD_ALREADY = Ignore("an onset holds once, and its end releases", never=True)
_STILL_SENDING = Ignore("playback ends after everything is sent", never=True)

S = Speaking
SPEAKING: dict[tuple[Speaking, Say], Cell] = {
    (S.IDLE, Say.COMMIT): Move("create", (S.WAITING, S.IDLE)),
    (S.IDLE, Say.CREATE): Move("create", (S.WAITING, S.IDLE)),
    (S.IDLE, Say.FIRST_OUTPUT): _OF_NO_RESPONSE,
    (S.IDLE, Say.HOLD): _NOTHING_SOUNDS,
    (S.IDLE, Say.RELEASE): _NOTHING_SOUNDS,
    (S.IDLE, Say.INTERRUPT): _NOTHING_SOUNDS,
    (S.IDLE, Say.GENERATED): _OF_NO_RESPONSE,
    (S.IDLE, Say.FAILED): _OF_NO_RESPONSE,
    (S.IDLE, Say.DRAINED): _OF_NO_RESPONSE,
    (S.IDLE, Say.PLAYED): _STILL_SENDING,
    (S.IDLE, Say.STARVED): _OF_NO_RESPONSE,
    (S.IDLE, Say.CANCEL): _NOT_ACTIVE,
    (S.IDLE, Say.DISCONNECT): Move("forget_debt", (S.IDLE,)),
    (S.WAITING, Say.COMMIT): Move("queue", (S.WAITING,)),
    (S.WAITING, Say.CREATE): _ONE_AT_A_TIME,
    (S.WAITING, Say.FIRST_OUTPUT): Move("begin", (S.SPEAKING, S.HELD)),
    (S.WAITING, Say.HOLD): _NOTHING_SOUNDS,
    (S.WAITING, Say.RELEASE): _NOTHING_SOUNDS,
    (S.WAITING, Say.INTERRUPT): Move("interrupt", (S.IDLE,)),
    (S.WAITING, Say.GENERATED): Move("finish_empty", (S.TAIL, S.IDLE, S.WAITING)),
    (S.WAITING, Say.FAILED): Move("fail", (S.TAIL, S.IDLE, S.WAITING)),
    (S.WAITING, Say.DRAINED): Ignore("nothing was said yet", never=True),
    (S.WAITING, Say.PLAYED): Ignore("what still plays is of the response before"),
    (S.WAITING, Say.STARVED): Move("fail", (S.TAIL, S.IDLE, S.WAITING)),
    (S.WAITING, Say.CANCEL): Move("cancel", (S.IDLE, S.WAITING)),
    (S.WAITING, Say.DISCONNECT): Move("break_off", (S.IDLE,)),
    (S.SPEAKING, Say.COMMIT): Move("queue", (S.SPEAKING,)),
    (S.SPEAKING, Say.CREATE): _ONE_AT_A_TIME,
    (S.SPEAKING, Say.FIRST_OUTPUT): _FIRST_WAS,
    (S.SPEAKING, Say.HOLD): Move("hold", (S.HELD,)),
    (S.SPEAKING, Say.RELEASE): Ignore("it is not held"),
    (S.SPEAKING, Say.INTERRUPT): Move("interrupt", (S.IDLE,)),
    (S.SPEAKING, Say.GENERATED): Move("wind_up", (S.SPEAKING, S.TAIL, S.IDLE, S.WAITING)),
    (S.SPEAKING, Say.FAILED): Move("wind_up", (S.SPEAKING, S.TAIL, S.IDLE, S.WAITING)),
    (S.SPEAKING, Say.DRAINED): Move("wind_up", (S.SPEAKING, S.TAIL, S.IDLE, S.WAITING)),
    (S.SPEAKING, Say.PLAYED): Ignore("what still plays is of the response before"),
    (S.SPEAKING, Say.STARVED): Move("starve", (S.TAIL, S.IDLE, S.WAITING)),
    (S.SPEAKING, Say.CANCEL): Move("cancel", (S.IDLE, S.WAITING)),
    (S.SPEAKING, Say.DISCONNECT): Move("break_off", (S.IDLE,)),
    (S.HELD, Say.COMMIT): Move("queue", (S.HELD,)),
    (S.HELD, Say.CREATE): _ONE_AT_A_TIME,
    (S.HELD, Say.FIRST_OUTPUT): _FIRST_WAS,
    (S.HELD, Say.HOLD): Ignore("a murmur that goes on finds it held"),
    (S.HELD, Say.RELEASE): Move("release", (S.SPEAKING, S.TAIL, S.IDLE, S.WAITING)),
    (S.HELD, Say.INTERRUPT): Move("interrupt", (S.IDLE,)),
    (S.HELD, Say.GENERATED): Move("stay_held", (S.HELD,)),
    (S.HELD, Say.FAILED): Move("stay_held", (S.HELD,)),
    (S.HELD, Say.DRAINED): Move("stay_held", (S.HELD,)),
    (S.HELD, Say.PLAYED): Ignore("what still plays is of the response before"),
    (S.HELD, Say.STARVED): Ignore("it is held, not starved", never=True),
    (S.HELD, Say.CANCEL): Move("cancel", (S.IDLE, S.WAITING)),
    (S.HELD, Say.DISCONNECT): Move("break_off", (S.IDLE,)),
    (S.TAIL, Say.COMMIT): Move("create", (S.WAITING, S.TAIL)),
    (S.TAIL, Say.CREATE): Move("create", (S.WAITING, S.TAIL)),
    (S.TAIL, Say.FIRST_OUTPUT): _OF_NO_RESPONSE,
    (S.TAIL, Say.HOLD): Move("hold_tail", (S.HELD_TAIL,)),
    (S.TAIL, Say.RELEASE): Ignore("it is not held"),
    (S.TAIL, Say.INTERRUPT): Move("cut_tail", (S.IDLE,)),
    (S.TAIL, Say.GENERATED): _OF_NO_RESPONSE,
    (S.TAIL, Say.FAILED): _OF_NO_RESPONSE,
    (S.TAIL, Say.DRAINED): _OF_NO_RESPONSE,
    (S.TAIL, Say.PLAYED): Move("end_tail", (S.IDLE, S.WAITING)),
    (S.TAIL, Say.STARVED): _OF_NO_RESPONSE,
    (S.TAIL, Say.CANCEL): _NOT_ACTIVE,
    (S.TAIL, Say.DISCONNECT): Move("break_off", (S.IDLE,)),
    (S.HELD_TAIL, Say.COMMIT): Move("create", (S.WAITING, S.HELD_TAIL)),
    (S.HELD_TAIL, Say.CREATE): Move("create", (S.WAITING, S.HELD_TAIL)),
    (S.HELD_TAIL, Say.FIRST_OUTPUT): _OF_NO_RESPONSE,
    (S.HELD_TAIL, Say.HOLD): _HELD_ALREADY,
    (S.HELD_TAIL, Say.RELEASE): Move("release_tail", (S.TAIL,)),
    (S.HELD_TAIL, Say.INTERRUPT): Move("cut_tail", (S.IDLE,)),
    (S.HELD_TAIL, Say.GENERATED): _OF_NO_RESPONSE,
    (S.HELD_TAIL, Say.FAILED): _OF_NO_RESPONSE,
    (S.HELD_TAIL, Say.DRAINED): _OF_NO_RESPONSE,
    (S.HELD_TAIL, Say.PLAYED): Move("end_tail", (S.IDLE, S.WAITING)),
    (S.HELD_TAIL, Say.STARVED): _OF_NO_RESPONSE,
    (S.HELD_TAIL, Say.CANCEL): _NOT_ACTIVE,
    (S.HELD_TAIL, Say.DISCONNECT): Move("break_off", (S.IDLE,)),
}

D = Drafting
DRAFTING: dict[tuple[Drafting, Guess], Cell] = {
    (D.NONE, Guess.START): Move("start", (D.RUNNING,)),
    (D.NONE, Guess.ABORT): Ignore("no draft runs"),
    (D.NONE, Guess.STALE): Ignore("no draft runs", never=True),
    (D.NONE, Guess.TAKE): Ignore("no draft runs; the reply starts afresh"),
    (D.NONE, Guess.FAILED): Ignore("failures belong to a running draft", never=True),
    (D.RUNNING, Guess.START): Ignore("one draft per pause", never=True),
    (D.RUNNING, Guess.ABORT): Move("drop", (D.NONE,)),
    (D.RUNNING, Guess.STALE): Move("drop", (D.NONE,)),
    (D.RUNNING, Guess.TAKE): Move("give", (D.NONE,)),
    (D.RUNNING, Guess.FAILED): Move("drop", (D.NONE,)),
}

_NOT_OPEN = Ignore("the session has not begun")
_OVER = Ignore("the session is over")
_OF_LIVING_SESSIONS = (Live.SPOKEN_OUT, Live.EXPIRED)

C = Lifecycle
LIFECYCLE: dict[tuple[Lifecycle, Live], Cell] = {
    (C.OPENING, Live.OPENED): Move("open", (C.LIVE,)),
    (C.OPENING, Live.LOST): Move("close", (C.CLOSED,)),
    (C.OPENING, Live.GONE): Move("close", (C.CLOSED,)),
    (C.OPENING, Live.BACK): _NOT_OPEN,
    (C.OPENING, Live.SHUT_DOWN): Move("close", (C.CLOSED,)),
    (C.OPENING, Live.SPOKEN_OUT): Ignore("the session has not begun", never=True),
    (C.OPENING, Live.EXPIRED): Ignore("the session has not begun", never=True),
    (C.LIVE, Live.OPENED): Ignore("a session begins once"),
    (C.LIVE, Live.LOST): Move("park", (C.PARKED,)),
    (C.LIVE, Live.GONE): Move("close", (C.CLOSED,)),
    (C.LIVE, Live.BACK): Ignore("the client is here"),
    (C.LIVE, Live.SHUT_DOWN): Move("drain", (C.DRAINING, C.CLOSED)),
    (C.LIVE, Live.SPOKEN_OUT): Ignore("nobody waits for the end", never=True),
    (C.LIVE, Live.EXPIRED): Move("expire", (C.CLOSED,)),
    (C.PARKED, Live.OPENED): Ignore("a session begins once"),
    (C.PARKED, Live.LOST): Ignore("the socket is lost already"),
    (C.PARKED, Live.GONE): Move("close", (C.CLOSED,)),
    (C.PARKED, Live.BACK): Move("resume", (C.LIVE,)),
    (C.PARKED, Live.SHUT_DOWN): Move("close", (C.CLOSED,)),
    (C.PARKED, Live.SPOKEN_OUT): Ignore("a parked session says nothing", never=True),
    (C.PARKED, Live.EXPIRED): Move("close", (C.CLOSED,)),
    (C.DRAINING, Live.OPENED): Ignore("a session begins once"),
    (C.DRAINING, Live.LOST): Move("close", (C.CLOSED,)),
    (C.DRAINING, Live.GONE): Move("close", (C.CLOSED,)),
    (C.DRAINING, Live.BACK): Ignore("the client is here"),
    (C.DRAINING, Live.SHUT_DOWN): Move("drain", (C.DRAINING, C.CLOSED)),
    (C.DRAINING, Live.SPOKEN_OUT): Move("close", (C.CLOSED,)),
    (C.DRAINING, Live.EXPIRED): Move("close", (C.CLOSED,)),
    **{(C.CLOSED, signal): _OVER for signal in Live if signal not in _OF_LIVING_SESSIONS},
    **{(C.CLOSED, signal): Ignore("nothing is due", never=True) for signal in _OF_LIVING_SESSIONS},
}

State = TypeVar("State", bound=Enum)
Signal = TypeVar("Signal", bound=Enum)


def draw(table: dict[tuple[State, Signal], Cell]) -> str:
    """One region's moves between different states, as a Mermaid state diagram."""
    edges: dict[tuple[str, str], list[str]] = {}
    for (state, signal), cell in table.items():
        if isinstance(cell, Move):
            for target in cell.to:
                if target is not state:
                    edges.setdefault((state.name, target.name), []).append(signal.value)
    lines = ["stateDiagram-v2"]
    lines += [f"    {a} --> {b}: {', '.join(signals)}" for (a, b), signals in edges.items()]
    return "\n".join(lines)
