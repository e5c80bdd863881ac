"""What a watcher is shown of the conversation: one word, a pure function of its regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.session.notices import ShownState
from realtime.session.policy import SAMPLES_PER_MS
from realtime.session.settings import Modality
from realtime.session.states import Listening, Speaking

if TYPE_CHECKING:
    from realtime.session.context import Context
    from realtime.session.listening import ListeningRegion
    from realtime.session.speaking import SpeakingRegion
    from realtime.session.turns import Turns

# Longer than the gaps between the words of a sentence: from here on a speaker expects an answer.
THINKING_AFTER_MS = 400


def shown_state(
    ctx: Context, listening: ListeningRegion, speaking: SpeakingRegion, turns: Turns
) -> ShownState:
    """What sounds goes before what is heard, and both before what is only being prepared."""
    match speaking.state:
        case Speaking.TAIL | Speaking.HELD_TAIL:
            return ShownState.SPEAKING  # a held tail plays on: all of it was sent
        case Speaking.HELD if _has_sounded(ctx, speaking):
            return ShownState.HELD
        case Speaking.SPEAKING if _has_sounded(ctx, speaking) or _is_written(speaking):
            return ShownState.SPEAKING
        case _ if speaking.is_busy and ctx.playback.end_ms > ctx.now_ms:
            return ShownState.SPEAKING  # the reply before it is still heard
        case _:
            pass
    if listening.is_in_turn and not _expects_answer(ctx, listening):
        return ShownState.HEARING
    is_answer_due = turns.is_concluding and ctx.settings.creates_responses
    if listening.is_in_turn or speaking.is_busy or is_answer_due:
        return ShownState.THINKING
    return ShownState.LISTENING


def _has_sounded(ctx: Context, speaking: SpeakingRegion) -> bool:
    """Whether any sound of the running response was sent."""
    response = speaking.response
    track = ctx.playback.get(response.message_item_id or "") if response else None
    return track is not None and track.sent_samples > 0


def _is_written(speaking: SpeakingRegion) -> bool:
    """Whether the running response is a text, which is told as it comes."""
    response = speaking.response
    if response is None or response.message_item_id is None:
        return False
    return response.shape.modality is Modality.TEXT


def _expects_answer(ctx: Context, listening: ListeningRegion) -> bool:
    """Whether a speaker has been silent for long enough to wait for an answer."""
    turn = listening.turn
    is_silent = listening.state in (Listening.PAUSE, Listening.ONSET_PAUSE)
    if turn is None or not is_silent or not ctx.settings.creates_responses:
        return False
    return ctx.position - turn.quiet_since >= THINKING_AFTER_MS * SAMPLES_PER_MS
