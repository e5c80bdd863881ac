"""One turn of the user, from its first suspicion to its item or its end in nothing."""

from __future__ import annotations

from dataclasses import dataclass

from realtime.session.policy import SAMPLES_PER_MS


@dataclass(slots=True)
class Turn:
    """Positions are samples at 16 kHz. A revision begins whenever speech resumes."""

    number: int
    item_id: str
    start: int  # where its audio is kept from
    onset: int  # where its voice began
    revision: int = 0
    is_announced: bool = False  # speech_started was sent
    is_manual: bool = False  # ended by the client: keeps its item whatever was heard
    wants_reply: bool = False  # its commit is answered without being asked
    drafted_revision: int = -1  # the revision that a draft was begun for

    # The pause whose end is being judged.
    quiet_since: int = 0
    asked: int = 0  # how many of the judge's questions were put
    judge_request: str | None = None
    probability: float | None = None  # the judge's last answer for this pause
    is_unjudged: bool = False  # the judge has failed in this pause

    # What was heard, of this revision.
    recognition: str | None = None  # the request under way
    is_listening: bool = False  # the recognition still takes what comes
    voiced_samples: int = 0  # of its sounds before the present one, while they are weighed
    glimpse: str = ""  # what was heard so far, of speech that goes on; may be revised
    shown: str = ""  # what the client was last told of it
    text: str | None = None
    failure: tuple[str, str] | None = None  # (code, message) of the recognition
    # What was heard before the last long pause stands: what follows is heard by itself.
    settled_text: str = ""
    settled_to: int | None = None
    end: int = 0  # where its audio ends, once decided

    # For the ledger, on the shell's clock.
    speech_end_ms: float | None = None
    transcript_ms: float | None = None
    turn_end_ms: float | None = None

    @property
    def heard_so_far(self) -> str:
        """The words of all revisions, as far as they are known."""
        return self.glimpse if self.text is None else self.text

    @property
    def audio_ms(self) -> int:
        return (self.end - self.start) // SAMPLES_PER_MS

    def begin_pause(self, quiet_since: int) -> None:
        self.quiet_since = quiet_since
        self.asked = 0
        self.judge_request = None
        self.probability = None
        self.is_unjudged = False

    @property
    def unsettled_from(self) -> int:
        """Where the audio begins that is still to be heard."""
        return self.start if self.settled_to is None else self.settled_to

    def settle(self, position: int) -> None:
        """Keep the text up to `position`, which lies in a pause."""
        if self.text:
            self.settled_text = self.text
            self.settled_to = position

    def whole_text(self, text: str) -> str:
        """The text of what was still to be heard, behind what stands."""
        return " ".join(part for part in (self.settled_text, text.strip()) if part)

    def unsettle(self) -> None:
        """Hear everything anew."""
        self.settled_text = ""
        self.settled_to = None

    def resume(self) -> None:
        """Speech goes on: what was heard and judged so far is of an older revision."""
        self.revision += 1
        self.judge_request = None
        self.probability = None
        self.recognition = None
        self.is_listening = False
        self.text = None
        self.failure = None
        self.transcript_ms = None
