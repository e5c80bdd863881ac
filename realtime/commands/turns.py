"""The story of a conversation as its client sees it: who said what, and when each step came."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from realtime.commands.playback import Playback
from realtime.commands.wire_client import WIRE_RATE_HZ, Pcm

VOICED_BELOW_PEAK_DB = 35  # speech ends at its last window that is this close to its loudest one
VOICED_WINDOW_MS = 10
DECISION_LIMIT_MS = 12_000  # a recogniser on a busy machine has answered by then


class Step(StrEnum):
    """The steps of a turn, in the order in which they are printed."""

    SPEECH_END = "speech end"  # the last voiced sample, as spoken
    STOPPED = "speech_stopped"
    COMMITTED = "committed"
    CREATED = "created"
    FIRST_AUDIO = "first audio"
    FIRST_SOUND = "first sound"  # the first audible sample, as played
    DONE = "done"


@dataclass(slots=True)
class Turn:
    """One thing said and its answer. `steps_ms` are on the client's clock."""

    user_item: str | None = None
    response_id: str | None = None
    reply_item: str | None = None
    heard: str | None = None
    said: str = ""
    status: str | None = None
    problem: str | None = None
    steps_ms: dict[Step, float] = field(default_factory=dict[Step, float])

    @property
    def is_open(self) -> bool:
        """Whether something of it is still to come."""
        has_ended = Step.STOPPED in self.steps_ms or Step.COMMITTED in self.steps_ms
        is_speaking = self.user_item is not None and not has_ended
        return is_speaking or (self.response_id is not None and self.status is None)

    @property
    def delay_ms(self) -> float | None:
        """From the end of the user's speech to the first sound of the answer."""
        end, sound = self.steps_ms.get(Step.SPEECH_END), self.steps_ms.get(Step.FIRST_SOUND)
        return None if end is None or sound is None else sound - end


class TurnLog:
    """Builds turns from server events and keeps what the listener hears.

    speech_end_ms: gives the clock time of the last voiced sample before a position (ms of audio).
    """

    def __init__(self, playback: Playback, speech_end_ms: Callable[[int], float | None]) -> None:
        self.turns: list[Turn] = []
        self.errors: list[str] = []
        self.last_event_ms = 0.0
        self._playback = playback
        self._speech_end_ms = speech_end_ms

    def observe(self, at_ms: float, event: dict[str, Any]) -> None:
        self.last_event_ms = at_ms
        match event["type"]:
            case "input_audio_buffer.speech_started":
                self._by_user_item(event["item_id"])
            case "input_audio_buffer.speech_stopped":
                turn = self._by_user_item(event["item_id"])
                turn.steps_ms[Step.STOPPED] = at_ms
                end_ms = self._speech_end_ms(event["audio_end_ms"])
                if end_ms is not None:
                    turn.steps_ms[Step.SPEECH_END] = end_ms
            case "input_audio_buffer.committed":
                self._by_user_item(event["item_id"]).steps_ms[Step.COMMITTED] = at_ms
            case "conversation.item.input_audio_transcription.completed":
                self._by_user_item(event["item_id"]).heard = event["transcript"]
            case "response.created":
                turn = self._awaiting_response()
                turn.response_id = event["response"]["id"]
                turn.steps_ms[Step.CREATED] = at_ms
            case "response.output_audio.delta":
                self._play(at_ms, event)
            case "response.output_audio_transcript.delta" | "response.output_text.delta":
                self._by_response(event["response_id"]).said += event["delta"]
            case "response.done":
                self._finish(at_ms, event["response"])
            case "error":
                error = event["error"]
                self.errors.append(f"{error['code'] or error['type']}: {error['message']}")
            case _:
                pass

    @property
    def is_open(self) -> bool:
        return any(turn.is_open for turn in self.turns)

    def is_undecided(self, now_ms: float) -> bool:
        """Whether a turn has ended and may yet be committed, once it is recognised.

        A turn without words is dropped without an event, so the wait is bounded.
        """
        return any(
            Step.COMMITTED not in turn.steps_ms
            and now_ms - turn.steps_ms.get(Step.STOPPED, -math.inf) < DECISION_LIMIT_MS
            for turn in self.turns
        )

    def complete_sounds(self) -> None:
        """Note when each reply's first sound was heard, once nothing changes any more."""
        for turn in self.turns:
            if turn.reply_item is None:
                continue
            sound_ms = self._playback.first_audible_ms(turn.reply_item)
            if sound_ms is not None:
                turn.steps_ms[Step.FIRST_SOUND] = sound_ms

    def _play(self, at_ms: float, event: dict[str, Any]) -> None:
        turn = self._by_response(event["response_id"])
        turn.reply_item = turn.reply_item or event["item_id"]
        turn.steps_ms.setdefault(Step.FIRST_AUDIO, at_ms)
        pcm = np.frombuffer(base64.b64decode(event["delta"]), "<i2")
        self._playback.arrive(at_ms, event["item_id"], pcm)

    def _finish(self, at_ms: float, response: dict[str, Any]) -> None:
        turn = self._by_response(response["id"])
        turn.status = response["status"]
        turn.steps_ms[Step.DONE] = at_ms
        details = response.get("status_details") or {}
        error = details.get("error") or {}
        turn.problem = error.get("message") or details.get("reason")

    def _by_user_item(self, item_id: str) -> Turn:
        for turn in self.turns:
            if turn.user_item == item_id:
                return turn
        self.turns.append(Turn(user_item=item_id))
        return self.turns[-1]

    def _by_response(self, response_id: str) -> Turn:
        for turn in self.turns:
            if turn.response_id == response_id:
                return turn
        self.turns.append(Turn(response_id=response_id))
        return self.turns[-1]

    def _awaiting_response(self) -> Turn:
        for turn in reversed(self.turns):
            if turn.response_id is None and Step.COMMITTED in turn.steps_ms:
                return turn
        self.turns.append(Turn())
        return self.turns[-1]


def last_voiced_sample(pcm: Pcm, end: int) -> int | None:
    """The end of the last voiced window before sample `end`, or None where all is silence."""
    window = WIRE_RATE_HZ * VOICED_WINDOW_MS // 1000
    count = min(end, len(pcm)) // window
    if count == 0:
        return None
    frames = pcm[: count * window].astype(np.float64).reshape(count, window)
    power = np.mean(frames**2, axis=1)
    if power.max() == 0:
        return None
    voiced = np.flatnonzero(power > power.max() * 10 ** (-VOICED_BELOW_PEAK_DB / 10))
    return int(voiced[-1] + 1) * window
