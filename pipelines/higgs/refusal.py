"""What a caller asks of a voice, checked against what its model can do, before anything is run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipelines.higgs.member import Member
from pipelines.higgs.text.vocabulary import CONTROL_TAGS

_TAG = re.compile(r"<\|[^<>|\s]*\|>")


class Refusal(ValueError):
    """The member cannot do what is asked; the caller's mistake, not the server's.

    code: a short machine-readable word. field: which part of the request. message: what to do.
    """

    def __init__(self, code: str, field: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of one speech; `None` where the caller said nothing.

    instructions: how to speak, or where. follows_speech: the text is to be appended behind speech.
    references: how many samples of a voice; transcript: what the first of them says.
    """

    text: str = ""
    speed: float = 1.0
    instructions: str | None = None
    follows_speech: bool = False
    references: int = 0
    transcript: str | None = None


def check(member: Member, wish: Wish) -> None:
    """Raises Refusal for the first thing that the member cannot do."""
    able = member.abilities
    for tag in _TAG.findall(wish.text):
        if tag in CONTROL_TAGS and tag not in able.controls:
            raise Refusal(
                "unsupported_control",
                "input",
                f"{member.name} knows no control tag {tag}: leave it out, or use a voice of a "
                "model that has control tags.",
            )
    if wish.speed != 1.0 and not able.speed:
        raise Refusal(
            "unsupported_speed",
            "speed",
            f"{member.name} speaks at its own speed: leave 'speed' out, or set it to 1.0.",
        )
    if wish.instructions and not able.scene:
        raise Refusal(
            "unsupported_instructions",
            "instructions",
            f"{member.name} takes no description of how to speak: leave 'instructions' out.",
        )
    if wish.follows_speech and not able.appends:
        raise Refusal(
            "unsupported_append",
            "input",
            f"{member.name} cannot go on behind its own speech: send the whole text at once.",
        )
    if wish.references > 1:
        raise Refusal(
            "unsupported_references",
            "references",
            f"{member.name} speaks with one voice: send one reference, not {wish.references}.",
        )
    if wish.references and not able.bare_reference and not (wish.transcript or "").strip():
        raise Refusal(
            "transcript_required",
            "reference_text",
            f"{member.name} copies a voice only from audio whose words it is told: send the "
            "reference's transcript with it.",
        )
