"""The speaking region: the default conversation's response and the voice lane it speaks on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.session.creation import Creation, Debt, Failure
from realtime.session.deadlines import Due
from realtime.session.effects import VOICE_LANE, CutLane, HoldLane, Observe, ReleaseLane
from realtime.session.ledger import Ledger, Stamp
from realtime.session.notices import ResponseStatus
from realtime.session.region import Region
from realtime.session.reply_request import shape_response, start_reply
from realtime.session.response import Response
from realtime.session.states import Speaking
from realtime.session.table import SPEAKING, Say

if TYPE_CHECKING:
    from collections.abc import Callable

    from realtime.session.context import Context
    from realtime.session.turn import Turn

NO_FIRST_OUTPUT = "reply_timeout"
STALLED = "reply_stalled"


class SpeakingRegion(Region[Speaking, Say]):
    """At most one response at a time. `is_onset` tells whether the user may be starting to talk."""

    def __init__(
        self, ctx: Context, is_onset: Callable[[], bool], untranscribed: Callable[[], set[str]]
    ) -> None:
        super().__init__(ctx, SPEAKING, Speaking.IDLE)
        self.response: Response | None = None
        self.epoch = 0
        self.debt = Debt.NOTHING
        self._is_onset = is_onset
        self._untranscribed = untranscribed
        self._queued: Creation | None = None
        self.creation = Creation()
        self._has_begun = False  # whether the running response may be seen

    @property
    def has_answered(self) -> bool:
        """Whether the lane is silent after a response that came to its end."""
        return (
            self.state is Speaking.IDLE
            and self.response is not None
            and self.response.status is ResponseStatus.COMPLETED
        )

    @property
    def is_weighing(self) -> bool:
        """Whether a sound may be a murmur that only wants the agent to go on.

        So it may when a reply has been heard for a while, and more than its last words is to come.
        """
        response, ctx = self.response, self.ctx
        reply = response.reply if response else None
        track = ctx.playback.get(response.message_item_id or "") if response else None
        if self.state not in (Speaking.SPEAKING, Speaking.HELD) or reply is None:
            return False
        closing_samples = ctx.policy.closing_ms * reply.rate_hz // 1000
        unsent = reply.produced_samples - reply.sent_samples
        return (
            ctx.settings.interrupts_responses
            and ctx.is_closely_paced
            and track is not None
            and track.heard_ms(ctx.now_ms) >= ctx.policy.opening_ms
            and not (reply.ending is not None and unsent < closing_samples)
        )

    def confirm_ms(self, turn: Turn | None) -> int:
        """How long a sound must last to be speech that means it. Unheard words weigh nothing."""
        is_weighed = turn is not None and turn.is_listening and self.is_weighing
        policy = self.ctx.policy
        return policy.certain_ms if is_weighed else policy.confirm_ms[self.state]

    @property
    def is_busy(self) -> bool:
        return self.state in (Speaking.WAITING, Speaking.SPEAKING, Speaking.HELD)

    @property
    def _has_words(self) -> bool:
        return self._has_begun and self.response is not None and self.response.has_words

    @property
    def due(self) -> Creation | None:
        """The response that is due and of which no word can have been heard yet."""
        if self._queued is not None or self.debt is Debt.ANSWER:
            return self._queued or Creation()
        return self.creation if self.is_busy and not self._has_words else None

    # ---- what comes in -------------------------------------------------------------------------

    def answer(self, signal: Say, creation: Creation) -> None:
        """Make a response, or queue it, and use what a draft has made already."""
        if self.fire(signal, creation):
            self.progress()

    def progress(self) -> None:
        """The running reply has more than before, or has ended."""
        response = self.response
        reply = response.reply if response else None
        if response is None or reply is None or response.is_done:
            return
        if self.state is Speaking.WAITING and reply.has_output:
            self.fire(Say.FIRST_OUTPUT)
        elif self.state is Speaking.SPEAKING:
            response.advance(self.ctx)
        elif self.state is Speaking.HELD and self._has_begun:
            response.advance_calls(self.ctx)
        if reply.ending is not None and not response.is_done:
            self.fire(Say.FAILED if reply.ending.has_failed else Say.GENERATED)

    def transcribed(self, item_id: str) -> None:
        """An item's text came; the prompt may be complete now."""
        response = self.response
        if response is None or response.is_done or item_id not in response.waits_for:
            return
        response.waits_for.discard(item_id)
        if not response.waits_for:
            self._start(response)

    def transcription_failed(self, item_id: str, code: str, message: str) -> None:
        response = self.response
        if response is not None and item_id in response.waits_for and not response.is_done:
            self.fire(Say.FAILED, Failure(code, message))

    def reject(self, code: str) -> None:
        if code == "conversation_already_has_active_response" and self.response is not None:
            message = (
                "Conversation already has an active response in progress: "
                f"{self.response.id}. Wait until the response is finished before creating a new "
                "one."
            )
        else:
            message = "Cancellation failed: no active response found"
        self.ctx.refuse(code, message)

    # ---- beginnings ----------------------------------------------------------------------------

    def create(self, creation: object) -> Speaking:
        assert isinstance(creation, Creation)
        ctx, turn = self.ctx, creation.turn
        self.creation = creation
        self._has_begun = False
        self.debt = Debt.NOTHING
        ledger = Ledger(turn.number if turn else None, drafted=creation.draft is not None)
        if turn is not None:
            for stamp, at_ms in (
                (Stamp.SPEECH_END, turn.speech_end_ms),
                (Stamp.TRANSCRIPT, turn.transcript_ms),
                (Stamp.TURN_END, turn.turn_end_ms),
            ):
                ledger.stamp(stamp, at_ms)
            ledger.stamp(Stamp.COMMITTED, ctx.now_ms)
        response = self.response = Response(
            ctx.ids.make("resp"),
            shape_response(ctx, creation.options),
            VOICE_LANE,
            self.epoch,
            ledger,
            waits_for=set(creation.waits_for),
        )
        response.create(ctx)
        if creation.failure is not None:
            response.fail(ctx, creation.failure.code, creation.failure.message)
            self._observe()
            return self.state
        if creation.draft is not None:
            response.take(ctx, creation.draft)
        elif not response.waits_for:
            self._start(response)
        ctx.deadlines.disarm(Due.HOLD)
        ctx.deadlines.arm(Due.FIRST_OUTPUT, ctx.now_ms + ctx.policy.first_output_ms)
        return Speaking.WAITING

    def _start(self, response: Response) -> None:
        made = self.creation
        reply = start_reply(self.ctx, response.shape, made.options, made.closing, made.text)
        response.take(self.ctx, reply)

    def queue(self, creation: object) -> Speaking:
        """One slot: a later turn's answer takes the earlier ones along."""
        assert isinstance(creation, Creation)
        self._queued = creation
        self.debt = Debt.NOTHING
        return self.state

    def begin(self, _: object) -> Speaking:
        self.ctx.deadlines.disarm(Due.FIRST_OUTPUT)
        if self._is_onset() and self.ctx.settings.interrupts_responses:
            return self.hold(None)
        return self._go_on()

    def _go_on(self) -> Speaking:
        assert self.response is not None
        self._has_begun = True
        self.response.advance(self.ctx)
        self._await_output()
        return Speaking.SPEAKING

    def _await_output(self) -> None:
        self.ctx.deadlines.arm(Due.STARVED, self.ctx.now_ms + self.ctx.policy.starve_ms)

    # ---- holding -------------------------------------------------------------------------------

    def hold(self, _: object) -> Speaking:
        # Far ahead of the listener a short hold goes unheard, but its fade would not.
        request, fade = self._fade() if self.ctx.is_closely_paced else (None, 0)
        self.ctx.emit(HoldLane(VOICE_LANE, request, fade))
        self.ctx.deadlines.disarm(Due.STARVED)
        self.ctx.deadlines.arm(Due.HOLD, self.ctx.now_ms + self.ctx.policy.hold_ms)
        return Speaking.HELD

    def release(self, _: object) -> Speaking:
        self.ctx.deadlines.disarm(Due.HOLD)
        self.ctx.emit(ReleaseLane(VOICE_LANE))
        self._go_on()
        return self.wind_up(None)

    def stay_held(self, _: object) -> Speaking:
        return Speaking.HELD

    def hold_tail(self, _: object) -> Speaking:
        """All is sent: there is nothing to stop, only to remember."""
        self.ctx.deadlines.arm(Due.HOLD, self.ctx.now_ms + self.ctx.policy.hold_ms)
        return Speaking.HELD_TAIL

    def release_tail(self, _: object) -> Speaking:
        self.ctx.deadlines.disarm(Due.HOLD)
        return Speaking.TAIL

    # ---- endings -------------------------------------------------------------------------------

    def wind_up(self, _: object) -> Speaking:
        """Done when the generation has ended, well or not, and all of it has left."""
        response = self.response
        assert response is not None and response.reply is not None
        if response.reply.ending is None or not response.reply.is_drained:
            return Speaking.SPEAKING
        response.conclude(self.ctx)
        return self._to_tail()

    def finish_empty(self, _: object) -> Speaking:
        assert self.response is not None
        self.response.conclude(self.ctx)
        return self._to_tail()

    def fail(self, failure: object) -> Speaking:
        response = self.response
        assert response is not None
        ending = response.reply.ending if response.reply else None
        if isinstance(failure, Failure):
            response.fail(self.ctx, failure.code, failure.message)
        elif ending is not None:
            response.fail(self.ctx, ending.code, ending.message)
        else:
            self._abort(response)
            seconds = self.ctx.policy.first_output_ms // 1000
            response.fail(
                self.ctx,
                NO_FIRST_OUTPUT,
                f"The language model gave nothing within {seconds} s. Is it running, and not "
                "overloaded?",
            )
        return self._to_tail()

    def suspect_starvation(self) -> None:
        """Nothing new came for long: starved only if nothing is left to send or to play either."""
        response, ctx = self.response, self.ctx
        reply = response.reply if response else None
        if reply is None or self.state is not Speaking.SPEAKING:
            return
        silent_since_ms = max(ctx.playback.end_ms, reply.last_output_ms)
        since_ms = silent_since_ms if reply.is_used_up else ctx.now_ms
        due_ms = since_ms + ctx.policy.stall_ms(reply.has_words)
        if due_ms <= ctx.now_ms:
            self.fire(Say.STARVED)
        else:
            ctx.deadlines.arm(Due.STARVED, due_ms)

    def starve(self, _: object) -> Speaking:
        response = self.response
        assert response is not None
        self._abort(response)
        seconds = self.ctx.policy.starve_ms // 1000
        response.fail(
            self.ctx, STALLED, f"The reply stopped in the middle and gave nothing for {seconds} s."
        )
        return self._to_tail()

    def _to_tail(self) -> Speaking:
        """Nothing more will be sent; the listener may still hear some."""
        ctx = self.ctx
        self._observe()
        self._disarm()
        if ctx.playback.end_ms > ctx.now_ms:
            ctx.deadlines.arm(Due.PLAYBACK_END, ctx.playback.end_ms)
            if self._queued is None:
                return Speaking.TAIL
        return self.end_tail(None)

    def end_tail(self, _: object) -> Speaking:
        """The lane is free: answer the turn that waited, or wait for the user."""
        self.ctx.deadlines.disarm(Due.HOLD)
        queued, self._queued = self._queued, None
        return Speaking.IDLE if queued is None else self._create_queued(queued)

    def _create_queued(self, queued: Creation) -> Speaking:
        waits_for = frozenset(self._untranscribed())
        return self.create(
            Creation(queued.options, queued.turn, closing=queued.closing, waits_for=waits_for)
        )

    def interrupt(self, _: object) -> Speaking:
        """The user talks: what was queued is answered together with what they say now."""
        if self._queued is not None or not self._has_words:
            self.debt = Debt.ANSWER
            self._queued = None
        self._owe_rest()
        self._cut("turn_detected")
        return Speaking.IDLE

    def cut_tail(self, _: object) -> Speaking:
        """The response is done already; only its sound ends."""
        self._owe_rest()
        self._silence(None, 0)
        return Speaking.IDLE

    def cancel(self, _: object) -> Speaking:
        self._cut("client_cancelled")
        queued, self._queued = self._queued, None
        return Speaking.IDLE if queued is None else self._create_queued(queued)

    def break_off(self, _: object) -> Speaking:
        """The client is gone."""
        self._queued = None
        self.debt = Debt.NOTHING
        if self.response is not None and not self.response.is_done:
            self._cut("client_cancelled")
        else:
            self._silence(None, 0)
        return Speaking.IDLE

    def forget_debt(self, _: object) -> Speaking:
        self.debt = Debt.NOTHING
        return self.state

    def _owe_rest(self) -> None:
        """If enough of the reply was unheard to be worth going on with."""
        response = self.response
        if response is not None and self._has_begun and response.is_worth_continuing(self.ctx):
            self.debt = max(self.debt, Debt.CONTINUATION)

    def _cut(self, reason: str) -> None:
        """Fade, bump the epoch and clear, tell the terminals, abort, mark what was heard."""
        response, ctx = self.response, self.ctx
        assert response is not None
        request, fade = self._fade()
        self._silence(request, fade)
        response.finish(ctx, ResponseStatus.CANCELLED, reason)
        self._observe()
        self._abort(response)

    def _fade(self) -> tuple[str | None, int]:
        """The request that sounds, and how many of its unsent samples end it without a click."""
        response = self.response
        reply = response.reply if response else None
        if response is None or reply is None:
            return None, 0
        has_faded = self.state is Speaking.HELD and self.ctx.is_closely_paced
        if response.message_item_id is None or has_faded:
            return reply.request, 0
        unsent = reply.produced_samples - reply.sent_samples
        fade = min(unsent, self.ctx.policy.fade_ms * reply.rate_hz // 1000)
        response.fade(self.ctx, fade)
        return reply.request, fade

    def _silence(self, request: str | None, fade_samples: int) -> None:
        self._disarm()
        self.ctx.deadlines.disarm(Due.PLAYBACK_END)
        self.epoch += 1
        self.ctx.emit(CutLane(VOICE_LANE, self.epoch, request, fade_samples))
        self.ctx.playback.stop(self.ctx.now_ms)

    def _abort(self, response: Response) -> None:
        if response.reply is not None:
            self.ctx.abort(response.reply.request)

    def _disarm(self) -> None:
        for due in (Due.FIRST_OUTPUT, Due.STARVED, Due.HOLD):
            self.ctx.deadlines.disarm(due)

    def _observe(self) -> None:
        response = self.response
        if response is not None:
            self.ctx.emit(Observe(response.ledger.close(response.id, response.status)))
