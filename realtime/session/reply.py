"""What the stages have made of one reply so far, whether or not anybody may see it yet."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from realtime.session.notices import ResponseUsage
from realtime.session.playback import Mark

CUT_SHORT = ("length", "content_filter")
FRAME_MS = 40  # audio leaves in such frames; less than one waits for more


@dataclass(slots=True)
class ReplyCall:
    index: int  # the model's own count
    call_id: str
    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How the generation ended: `reason` of a finish, or `code` and `message` of a failure."""

    reason: str = ""
    code: str = ""
    message: str = ""

    @property
    def has_failed(self) -> bool:
        return bool(self.code)

    @property
    def is_natural(self) -> bool:
        """Whether the model stopped of itself, so that its last words and call are whole."""
        return not self.has_failed and self.reason not in CUT_SHORT


@dataclass(slots=True)
class Reply:
    """One request's outputs. Counts are samples at the wire's rate."""

    request: str
    speaks: bool
    rate_hz: int
    text: str = ""
    produced_samples: int = 0
    sent_samples: int = 0
    marks: list[Mark] = field(default_factory=list[Mark])
    calls: list[ReplyCall] = field(default_factory=list[ReplyCall])
    ending: Ending | None = None
    written: Ending | None = None  # how the writing ended, before the speech did
    usage: ResponseUsage = ResponseUsage()  # until now; a reply that is broken off has no other
    first_text_ms: float | None = None
    voiced_ms: float | None = None  # when the voice was given the first words
    first_audio_ms: float | None = None
    last_output_ms: float = 0.0

    @property
    def has_output(self) -> bool:
        """Whether there is something to send: audio (or text, where none is spoken), or a call."""
        return bool(self.calls) or (self.produced_samples > 0 if self.speaks else bool(self.text))

    @property
    def has_words(self) -> bool:
        """Whether the model has begun: sound without text or call is a filler."""
        return bool(self.text or self.calls)

    @property
    def is_whole(self) -> bool:
        """Whether its words and calls are all there, and the model stopped of itself."""
        ending = self.ending or self.written
        return ending is not None and ending.is_natural

    @property
    def is_drained(self) -> bool:
        """Whether everything that was made has left. More may be made unless it has ended."""
        return self.sent_samples >= self.produced_samples

    @property
    def is_used_up(self) -> bool:
        """Whether nothing can leave before more is made."""
        unsent = self.produced_samples - self.sent_samples
        return unsent * 1000 < FRAME_MS * self.rate_hz

    def add_text(self, text: str, now_ms: float) -> None:
        if self.first_text_ms is None and text:
            self.first_text_ms = now_ms
        self.text += text
        self.last_output_ms = now_ms

    def add_audio(
        self, samples: int, text_end: int, now_ms: float, words: tuple[tuple[int, int], ...] = ()
    ) -> None:
        """Words may lie a little beyond what was produced: the rest of their sound is on its way,
        held back by whatever changes its rate.
        """
        if self.first_audio_ms is None and samples:
            self.first_audio_ms = now_ms
        self.produced_samples += samples
        for word_samples, characters in words:
            self._mark(word_samples, characters, ends_word=True)
        self._mark(self.produced_samples, text_end)
        self.last_output_ms = now_ms

    def _mark(self, samples: int, characters: int, *, ends_word: bool = False) -> None:
        last = self.marks[-1] if self.marks else Mark(0, 0)
        spoken = max(last.characters, min(characters, len(self.text)))
        self.marks.append(Mark(max(last.samples, samples), spoken, ends_word))

    def add_call(self, index: int, call_id: str, name: str, arguments: str, now_ms: float) -> None:
        """A piece of call `index`. Models write one call after another: a piece of an earlier
        index than the last one's is taken for the last call's, since that one alone is open.
        """
        if not self.calls or index > self.calls[-1].index:
            self.calls.append(ReplyCall(index, call_id, name))
        self.calls[-1].arguments += arguments
        self.last_output_ms = now_ms

    def characters_leaving(self, samples: int) -> int:
        """How much text may be shown once `samples` have left: of each word that began, or of each
        chunk where the voice tells no words."""
        if not self.marks:
            return 0
        place = bisect_left(self.marks, samples, key=lambda mark: mark.samples)
        return self.marks[min(place, len(self.marks) - 1)].characters
