"""The listening region: from frames of audio to turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.session.backchannel import is_backchannel, is_interruption
from realtime.session.creation import Debt
from realtime.session.deadlines import Due
from realtime.session.effects import ResetHearing
from realtime.session.notices import InputCleared, SpeechStarted, SpeechStopped
from realtime.session.patience import Patience, PauseEnd
from realtime.session.policy import SAMPLES_PER_MS
from realtime.session.region import Region
from realtime.session.states import Listening
from realtime.session.table import LISTENING, Guess, Hear, Say
from realtime.session.voice import Voice, VoiceChange

if TYPE_CHECKING:
    from realtime.session.context import Context
    from realtime.session.drafting import DraftingRegion
    from realtime.session.events import AudioFrame, ClientClear, ClientCommit
    from realtime.session.preparing import Preparation
    from realtime.session.speaking import SpeakingRegion
    from realtime.session.turn import Turn
    from realtime.session.turns import Turns

LEAST_COMMIT_MS = 100  # the wire's minimum for a manual commit
RING_MS = 30_000  # how far back audio of no turn can be had
ONSETS = (Listening.ONSET_QUIET, Listening.MURMUR, Listening.ONSET_PAUSE)
UNANNOUNCED = (Listening.ONSET_QUIET, Listening.MURMUR)
IN_TURN = (Listening.TALKING, Listening.PAUSE, Listening.ONSET_PAUSE)


class ListeningRegion(Region[Listening, Hear]):
    """Owns the turn under way. `turn` is None in QUIET, unless the client ends turns itself."""

    def __init__(
        self,
        ctx: Context,
        turns: Turns,
        speaking: SpeakingRegion,
        drafting: DraftingRegion,
        preparation: Preparation,
    ) -> None:
        super().__init__(ctx, LISTENING, Listening.QUIET)
        self.preparation = preparation
        self.patience = Patience(ctx, turns, speaking, drafting)
        self.turns = turns
        self.speaking = speaking
        self.drafting = drafting
        self.voice = Voice()
        self.turn: Turn | None = None
        self.buffer_start = 0  # where uncommitted audio begins

    @property
    def is_in_turn(self) -> bool:
        return self.state in IN_TURN

    def open(self) -> None:
        """The session begins."""
        if self.ctx.settings.turn_detection is None:
            self.turn = self.turns.open(self.buffer_start, self.buffer_start)

    # ---- what comes in -------------------------------------------------------------------------

    def hear(self, frame: AudioFrame) -> None:
        """32 ms went by."""
        ctx, policy, detection = self.ctx, self.ctx.policy, self.ctx.settings.turn_detection
        ctx.position = frame.position
        if detection is None:
            return
        up, down = policy.voice_thresholds(detection)
        match self.voice.hear(frame.position, frame.speech, up, down, policy.voice_down_ms):
            case VoiceChange.UP:
                self.fire(Hear.VOICE_UP)
            case VoiceChange.DOWN:
                self.fire(Hear.VOICE_DOWN)
            case None:
                pass
        if self.state is Listening.ONSET_QUIET:
            if self.voice.voiced_ms >= self.speaking.confirm_ms(self.turn):
                self.fire(Hear.CONFIRMED)
        elif self.state is Listening.ONSET_PAUSE:
            if self.voice.voiced_ms >= policy.resume_confirm_ms:
                self.fire(Hear.CONFIRMED)
        elif self.state is Listening.TALKING:
            if self.turn and ctx.position - self.turn.start >= policy.max_turn_ms * SAMPLES_PER_MS:
                self.fire(Hear.TOO_LONG)
        elif self.state is Listening.PAUSE:
            self._wait_out()
        if self.state is Listening.QUIET:
            ctx.deadlines.disarm(Due.AUDIO_GAP)
        else:
            ctx.deadlines.arm(Due.AUDIO_GAP, ctx.now_ms + policy.audio_gap_ms)

    def gap(self) -> None:
        """Audio stopped coming in the middle of something, as from a muted microphone."""
        self.fire(Hear.AUDIO_GAP)
        self.voice.reset()
        self.ctx.emit(ResetHearing())
        if self.state is not Listening.QUIET:
            self.ctx.deadlines.arm(Due.AUDIO_GAP, self.ctx.now_ms + self.ctx.policy.audio_gap_ms)

    def judge(self, request: str, probability: float | None) -> None:
        """The judge's answer; None: it has failed."""
        if self.turn is not None and self.patience.settle(self.turn, request, probability):
            self.fire(Hear.JUDGED, probability)

    def commit(self, event: ClientCommit) -> None:
        self.ctx.position = max(self.ctx.position, event.position)
        turn = None if self.state in UNANNOUNCED else self.turn
        start = self.buffer_start if turn is None else turn.start
        buffered = self.ctx.position - start
        if buffered < LEAST_COMMIT_MS * SAMPLES_PER_MS:
            self.ctx.refuse(
                "input_audio_buffer_commit_empty",
                "Error committing input audio buffer: buffer too small. Expected at least "
                f"{LEAST_COMMIT_MS}ms of audio, but buffer only has "
                f"{buffered / SAMPLES_PER_MS:.2f}ms of audio.",
            )
        else:
            self.fire(Hear.COMMIT)

    def clear(self, event: ClientClear) -> None:
        self.ctx.position = max(self.ctx.position, event.position)
        self.fire(Hear.CLEAR)

    def _wait_out(self) -> None:
        """A pause got 32 ms longer."""
        turn = self.turn
        if turn is None:
            return
        match self.patience.end_of(turn):
            case PauseEnd.SILENCE:
                self.fire(Hear.SILENCE_OVER, self.patience.silence_end(turn))
            case PauseEnd.JUDGED:
                self.fire(Hear.WAITED)
            case None:
                self.patience.ask(turn)
                self.consider_draft(None)

    def draft_grew(self) -> None:
        """The draft has more than before: the turn that it answers may end now."""
        if self.state is Listening.PAUSE and self.turn is not None:
            if self.patience.end_of(self.turn) is PauseEnd.JUDGED:
                self.fire(Hear.WAITED)

    # ---- actions -------------------------------------------------------------------------------

    def consider_draft(self, _: object) -> Listening:
        """Work ahead when a pause is long enough and what was said is known."""
        turn, ctx = self.turn, self.ctx
        if (
            self.state is Listening.PAUSE
            and turn is not None
            and turn.text
            and turn.drafted_revision != turn.revision
            and ctx.position - turn.quiet_since >= ctx.policy.draft_after_ms * SAMPLES_PER_MS
            and self.patience.may_draft
        ):
            turn.drafted_revision = turn.revision
            self.preparation.stop()
            self.drafting.fire(Guess.START, turn)
        return self.state

    def begin_onset(self, _: object) -> Listening:
        ctx = self.ctx
        policy = ctx.policy
        padding_ms = max(
            policy.onset_padding_ms, policy.announced_padding_ms(ctx.settings.turn_detection)
        )
        padded = self.voice.since - padding_ms * SAMPLES_PER_MS
        self.turn = self.turns.open(max(0, self.buffer_start, padded), self.voice.since)
        if ctx.settings.interrupts_responses:
            self.speaking.fire(Say.HOLD)
        if self.speaking.is_weighing:
            self.turns.listen(self.turn, is_urgent=True)
        return Listening.ONSET_QUIET

    def end_onset(self, _: object) -> Listening:
        """The sound is over before it was taken for a turn: a click, or a word to be weighed."""
        turn = self.turn
        assert turn is not None
        least_ms = self.ctx.policy.confirm_ms[self.speaking.state]
        if not turn.is_listening or self.voice.voiced_ms < least_ms:
            return self.drop_onset(None)
        turn.voiced_samples = self.voice.voiced_samples
        self.begin_pause(None)
        return Listening.MURMUR

    def resume_onset(self, _: object) -> Listening:
        """More comes before the first words are known: both are weighed together."""
        turn = self.turn
        assert turn is not None
        self.turns.cancel_recognition(turn)
        turn.resume()
        self.voice.voiced_samples += turn.voiced_samples
        if self.ctx.settings.interrupts_responses:
            self.speaking.fire(Say.HOLD)
        self.turns.listen(turn, is_urgent=True)
        return Listening.ONSET_QUIET

    def weigh_glimpse(self, _: object) -> Listening:
        is_meant = self.turn is not None and is_interruption(self.turn.glimpse)
        return self.begin_turn(None) if is_meant else Listening.ONSET_QUIET

    def weigh_murmur(self, _: object) -> Listening:
        """A word that stands for itself: go on, or stop."""
        turn = self.turn
        assert turn is not None
        if turn.text is None and turn.recognition is not None:
            return Listening.MURMUR  # a glimpse of half the word came late
        if not turn.text or (self.speaking.is_weighing and is_backchannel(turn.text)):
            return self.drop_onset(None)
        self._announce(turn)
        if self.ctx.settings.interrupts_responses:
            self.speaking.fire(Say.INTERRUPT)
        return Listening.PAUSE

    def drop_onset(self, _: object) -> Listening:
        self.ctx.deadlines.disarm(Due.AUDIO_GAP)
        self._drop_turn()
        self.speaking.fire(Say.RELEASE)
        return Listening.QUIET

    def begin_turn(self, _: object) -> Listening:
        turn, ctx = self.turn, self.ctx
        assert turn is not None
        self._announce(turn)
        if ctx.settings.interrupts_responses:
            self.speaking.fire(Say.INTERRUPT)
        if ctx.drafts and not turn.is_listening:
            self.turns.listen(turn)
        return self.read_ahead(None)

    def read_ahead(self, _: object) -> Listening:
        """The language model reads what is known while the user talks."""
        if self.patience.may_draft:
            self.preparation.prepare(self.turn)
        return Listening.TALKING

    def resume_turn(self, _: object) -> Listening:
        assert self.turn is not None
        self.drafting.fire(Guess.ABORT)
        self.ctx.abort(self.turn.judge_request)
        self.turns.resume(self.turn, self.voice.since)
        if self.ctx.settings.interrupts_responses:
            self.speaking.fire(Say.INTERRUPT)
        if self.ctx.drafts:
            self.turns.listen(self.turn)
        return Listening.TALKING

    def begin_pause(self, _: object) -> Listening:
        turn, ctx = self.turn, self.ctx
        assert turn is not None
        turn.begin_pause(self.voice.quiet_since)
        turn.speech_end_ms = ctx.now_ms - (ctx.position - turn.quiet_since) / SAMPLES_PER_MS
        self.turns.recognise(turn)
        return Listening.PAUSE

    def suspect_speech(self, _: object) -> Listening:
        if self.ctx.settings.interrupts_responses:
            self.speaking.fire(Say.HOLD)
        return Listening.ONSET_PAUSE

    def fall_back(self, _: object) -> Listening:
        self.speaking.fire(Say.RELEASE)
        return Listening.PAUSE

    def remember_verdict(self, _: object) -> Listening:
        return Listening.ONSET_PAUSE

    def weigh(self, _: object) -> Listening:
        assert self.turn is not None
        is_over = self.patience.end_of(self.turn) is PauseEnd.JUDGED
        return self.end_turn(None) if is_over else Listening.PAUSE

    def end_turn(self, end: object) -> Listening:
        """`end` is the exact position where server_vad ends a turn, else the present."""
        turn, ctx = self.turn, self.ctx
        assert turn is not None
        position = end if isinstance(end, int) else ctx.position
        self.turn = None
        self.buffer_start = position
        ctx.deadlines.disarm(Due.AUDIO_GAP)
        ctx.abort(turn.judge_request)
        turn.judge_request = None
        turn.wants_reply = ctx.settings.creates_responses
        ctx.tell(SpeechStopped(turn.item_id, position // SAMPLES_PER_MS))
        # The region is quiet from here on: whoever is told of the turn's end must see it so.
        self.state = Listening.QUIET
        self.turns.end(turn, position)
        return Listening.QUIET

    def split_turn(self, _: object) -> Listening:
        """Commit this much, so that a monologue stays bounded; the answer comes at its end."""
        turn, ctx = self.turn, self.ctx
        assert turn is not None
        position = ctx.position
        turn.wants_reply = ctx.settings.creates_responses
        self.buffer_start = position
        ctx.tell(SpeechStopped(turn.item_id, position // SAMPLES_PER_MS))
        self.turn = self.turns.open(position, position)
        self._announce(self.turn)
        self.turns.end(turn, position)
        if ctx.drafts:
            self.turns.listen(self.turn)
        return Listening.TALKING

    def commit_buffer(self, _: object) -> Listening:
        ctx = self.ctx
        if self.is_in_turn:
            self.speaking.debt = Debt.NOTHING  # the client asks for what it wants answered
        if self.turn is None or self.state in UNANNOUNCED:
            self._open_buffer()
        assert self.turn is not None
        self.turns.commit_manually(self.turn, ctx.position)
        return self._start_over()

    def clear_buffer(self, _: object) -> Listening:
        self.drafting.fire(Guess.ABORT)
        self._drop_turn()
        self.ctx.tell(InputCleared())
        # Who is told of the turn's end must see the region as it is from here on.
        self.state = self._start_over()
        self.turns.listener.turn_dropped()
        return self.state

    def change_detection(self, _: object) -> Listening:
        """The session's turn detection has just become what the settings say."""
        turn, ctx = self.turn, self.ctx
        if ctx.settings.turn_detection is None:
            self.voice.reset()
            ctx.deadlines.disarm(Due.AUDIO_GAP)
            self.speaking.fire(Say.RELEASE)
            if turn is None or not turn.is_announced:
                self._open_buffer()
            else:
                self.speaking.debt = Debt.NOTHING
                self.turns.cancel_recognition(turn)
                ctx.abort(turn.judge_request)
                turn.resume()
            return Listening.QUIET
        if not ctx.settings.interrupts_responses:
            self.speaking.fire(Say.RELEASE)
        if self.state is Listening.QUIET and turn is not None:
            if turn.is_announced:
                ctx.tell(SpeechStopped(turn.item_id, ctx.position // SAMPLES_PER_MS))
            self.buffer_start = turn.start
            self._drop_turn()
        return self.state

    def forget(self, _: object) -> Listening:
        self.preparation.stop()
        self._drop_turn()
        self.turns.drop_all()
        self.voice.reset()
        self.ctx.emit(ResetHearing())
        self.buffer_start = self.ctx.position
        return Listening.QUIET

    # ---- parts of actions ----------------------------------------------------------------------

    def _announce(self, turn: Turn) -> None:
        ctx = self.ctx
        padding_ms = ctx.policy.announced_padding_ms(ctx.settings.turn_detection)
        padded = turn.onset - padding_ms * SAMPLES_PER_MS
        turn.is_announced = True
        start = max(0, turn.start, padded)
        ctx.tell(SpeechStarted(turn.item_id, start // SAMPLES_PER_MS))
        self.turns.show(turn)

    def _open_buffer(self) -> None:
        """A turn of everything that is not committed yet, as far as it can be had."""
        self._drop_turn()
        oldest = self.ctx.position - RING_MS * SAMPLES_PER_MS
        self.turn = self.turns.open(max(self.buffer_start, oldest), self.buffer_start)

    def _drop_turn(self) -> None:
        if self.turn is not None:
            self.turns.drop(self.turn)
            self.turn = None

    def _start_over(self) -> Listening:
        """What the voice's level makes of the region after the client took or dropped the audio."""
        ctx = self.ctx
        self.turn = None
        self.buffer_start = ctx.position
        if ctx.settings.turn_detection is None:
            self.turn = self.turns.open(ctx.position, ctx.position)
        elif self.voice.is_up:
            self.voice.voiced_samples = 0
            self.turn = self.turns.open(ctx.position, ctx.position)
            return Listening.ONSET_QUIET
        self.speaking.fire(Say.RELEASE)
        ctx.deadlines.disarm(Due.AUDIO_GAP)
        return Listening.QUIET
