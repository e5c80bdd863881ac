"""Thresholds of turn-taking, per profile and per state of the speaking region.

One set of thresholds for all states is the commonest cause of bad barge-in: what must count as
speech in a quiet room is not what may stop an agent in mid-sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from realtime.session.settings import Eagerness, ServerVad, TurnDetection
from realtime.session.states import Speaking

INPUT_RATE_HZ = 16_000  # audio time is counted at the rate that every recogniser hears
SAMPLES_PER_MS = INPUT_RATE_HZ // 1000
FRAME_SAMPLES = 512  # one step of the detector: 32 ms

_HYSTERESIS = 0.15  # the detector flickers around its threshold; Silero's own margin
_LOWEST_DOWN = 0.05  # below this even noise counts as speech that goes on


@dataclass(frozen=True, slots=True)
class Policy:
    """Every number of turn-taking. Times are audio time unless they say otherwise."""

    voice_up: float = 0.5  # Silero's recommended threshold
    confirm_ms: dict[Speaking, int] = field(
        default_factory=lambda: {
            # A word's first syllable lasts about 100 ms; clicks and breaths stay below.
            Speaking.IDLE: 96,
            Speaking.WAITING: 96,
            # While the agent sounds, a false alarm costs more than 32 ms.
            Speaking.SPEAKING: 128,
            Speaking.HELD: 128,
            Speaking.HELD_TAIL: 128,
            Speaking.TAIL: 128,
        }
    )
    # Over speech of which much is still to come, a murmur that wants it to go on lasts this long
    # at most; whoever talks longer wants to be heard, whatever the words.
    certain_ms: int = 1100
    # With more than this ahead of the listener, to stop sending silences nobody: then an onset
    # that is confirmed interrupts, and is not weighed first.
    weighing_lead_ms: int = 400
    # What begins right after a reply has begun is mostly the rest of a turn that was cut short.
    opening_ms: int = 800
    # A murmur so close to the end of what is said answers it.
    closing_ms: int = 1000
    # Shorter pauses may lie inside a word, and what a recogniser makes of half a word is nothing.
    settling_pause_ms: int = 300
    resume_confirm_ms: int = 96  # speech that goes on after a pause
    voice_down_ms: int = 64  # one quiet frame inside a word is no pause
    onset_padding_ms: int = 400  # the recogniser hears what the detector was slow to notice
    prefix_padding_ms: int = 300  # the wire's default for the announced start

    draft_after_ms: int = 120  # most pauses inside a phrase are shorter
    # The judge is asked shortly before its answer can count, and then again: each question takes
    # a core from the recogniser and the language model for a moment.
    judge_asks_ms: dict[Eagerness, tuple[int, ...]] = field(
        default_factory=lambda: {
            Eagerness.LOW: (768, 1150, 1600, 2200),
            Eagerness.MEDIUM: (512, 800),
            Eagerness.AUTO: (512, 800),
            Eagerness.HIGH: (192, 448, 704),
        }
    )
    # Silence that ends a turn which the judge is sure of, and one that it thinks goes on. Even
    # sure verdicts need some: most pauses between two sentences of one turn are over by then.
    patience_ms: dict[Eagerness, tuple[int, int]] = field(
        default_factory=lambda: {
            Eagerness.LOW: (900, 2400),
            Eagerness.MEDIUM: (560, 940),
            Eagerness.AUTO: (560, 940),
            Eagerness.HIGH: (320, 800),
        }
    )
    doubtful_below: float = 0.5  # the judge's own threshold
    # A turn that is over is announced when its answer can be heard, but no later than this: what
    # the speaker adds meanwhile costs nothing.
    settle_ms: int = 1500
    longest_wait_ms: dict[Eagerness, int] = field(
        # The wire promises these bounds for semantic_vad.
        default_factory=lambda: {
            Eagerness.LOW: 8000,
            Eagerness.MEDIUM: 4000,
            Eagerness.AUTO: 4000,
            Eagerness.HIGH: 2000,
        }
    )
    max_turn_ms: int = 28_000  # what a recogniser with a 30 s window hears in one piece

    # On the shell's clock:
    audio_gap_ms: int = 1000  # a muted microphone sends nothing at all
    transcript_deadline_ms: int = 10_000  # on top of the turn's own length
    hold_ms: int = 2000  # a possible interruption is decided long before
    first_output_ms: int = 45_000  # remote language models may think for long
    starve_ms: int = 15_000  # a reply that stopped in mid-sentence will not go on
    tool_deadline_ms: int = 60_000  # a forgotten tool call must not block the idle timer
    fade_ms: int = 5  # long enough to hide a click, too short to hear

    def stall_ms(self, has_words: bool) -> int:
        """How long a reply may be silent; one that was a filler so far has yet to begin."""
        return self.starve_ms if has_words else self.first_output_ms

    def voice_thresholds(self, detection: TurnDetection | None) -> tuple[float, float]:
        """(speech begins at, speech ends below), as probabilities."""
        up = detection.threshold if isinstance(detection, ServerVad) else self.voice_up
        return up, max(_LOWEST_DOWN, up - _HYSTERESIS)

    def announced_padding_ms(self, detection: TurnDetection | None) -> int:
        return (
            detection.prefix_padding_ms
            if isinstance(detection, ServerVad)
            else self.prefix_padding_ms
        )

    def wait_ms(self, probability: float, eagerness: Eagerness, trails_off: bool) -> int:
        """Silence after which a turn ends that is finished with `probability`.

        trails_off: its words so far ask for more; then even a doubtful verdict has time to change.
        """
        sure_ms, unsure_ms = self.patience_ms[eagerness]
        if trails_off:
            is_doubtful = probability < self.doubtful_below
            return self.longest_wait_ms[eagerness] // 2 if is_doubtful else unsure_ms
        return round(unsure_ms + (sure_ms - unsure_ms) * probability)


# Phone lines echo and clip, and their noise comes in bursts.
_PHONE = Policy(
    confirm_ms={
        Speaking.IDLE: 96,
        Speaking.WAITING: 128,
        Speaking.SPEAKING: 160,
        Speaking.HELD: 160,
        Speaking.HELD_TAIL: 160,
        Speaking.TAIL: 160,
    },
)

PROFILES: dict[str, Policy] = {"browser": Policy(), "phone": _PHONE}
