"""What the stages have made of one reply so far, whether or not anybody may see it yet."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class ReplyCall:
    call_id: str
    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How the generation ended: `reason` of a finish, or `code` and `message` of a failure."""

    reason: str = ""
    code: str = ""
    message: str = ""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    @property
    def has_failed(self) -> bool:
        return bool(self.code)


@dataclass(slots=True)
class Reply:
    """One request's outputs. Counts are samples at the wire's rate."""

    request: str
    speaks: bool
    rate_hz: int
    text: str = ""
    produced_samples: int = 0
    sent_samples: int = 0
    marks: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    calls: list[ReplyCall] = field(default_factory=list[ReplyCall])
    ending: Ending | None = None
    first_text_ms: float | None = None
    first_audio_ms: float | None = None
    last_output_ms: float = 0.0

    @property
    def has_output(self) -> bool:
        """Whether there is something to send: audio (or text, where none is spoken), or a call."""
        return bool(self.calls) or (self.produced_samples > 0 if self.speaks else bool(self.text))

    @property
    def is_drained(self) -> bool:
        """Whether everything that was made has left. More may be made unless it has ended."""
        return self.sent_samples >= self.produced_samples

    def add_text(self, text: str, now_ms: float) -> None:
        if self.first_text_ms is None and text:
            self.first_text_ms = now_ms
        self.text += text
        self.last_output_ms = now_ms

    def add_audio(self, samples: int, text_end: int, now_ms: float) -> None:
        if self.first_audio_ms is None and samples:
            self.first_audio_ms = now_ms
        self.produced_samples += samples
        spoken = self.marks[-1][1] if self.marks else 0
        self.marks.append((self.produced_samples, max(spoken, min(text_end, len(self.text)))))
        self.last_output_ms = now_ms

    def add_call(self, index: int, call_id: str, name: str, arguments: str, now_ms: float) -> None:
        """A piece of call `index`; pieces of an index out of order belong to the last call."""
        if index >= len(self.calls):
            self.calls.append(ReplyCall(call_id, name))
        self.calls[min(index, len(self.calls) - 1)].arguments += arguments
        self.last_output_ms = now_ms

    def characters_leaving(self, samples: int) -> int:
        """How much text may be shown once `samples` have left: all of the chunks that began."""
        shown = 0
        before = 0
        for end_samples, text_end in self.marks:
            if before >= samples:
                break
            shown, before = text_end, end_samples
        return shown
