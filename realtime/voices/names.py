"""What an uploaded voice may be called."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_NAME_CHARACTERS = 64
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_NAME_CHARACTERS}}}")

# Clients that name none of their own send these, and get the default voice: an uploaded voice of
# such a name would answer people who never asked for it.
OPENAI_VOICES = frozenset(
    {
        "alloy",
        "ash",
        "ballad",
        "cedar",
        "coral",
        "echo",
        "fable",
        "marin",
        "nova",
        "onyx",
        "sage",
        "shimmer",
        "verse",
    }
)
DEFAULT_VOICE = "default"  # likewise what programs written for other servers send


class VoiceRefused(ValueError):
    """A voice that cannot be kept. `field` names the part of it; the message says what to do.

    code: voice_name_invalid, voice_name_taken, voice_exists, too_many_voices,
    voice_sample_refused, transcript_invalid or consent_required.
    """

    def __init__(self, field: str, code: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.code = code
        self.message = message


def find_name(wanted: str, names: Iterable[str]) -> str | None:
    """The one of them that is meant, which may be written in other capitals: `Anna` for `anna`."""
    known = list(names)
    if wanted in known:
        return wanted
    return next((name for name in known if name.casefold() == wanted.casefold()), None)


def is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> None:
    """Raises VoiceRefused."""
    if not is_name(name):
        raise VoiceRefused(
            "name",
            "voice_name_invalid",
            f"Invalid 'name': expected 1 to {MAX_NAME_CHARACTERS} letters (a to z), digits, "
            "hyphens and underscores.",
        )
    if name.casefold() in OPENAI_VOICES:
        raise VoiceRefused(
            "name",
            "voice_name_taken",
            f"Invalid 'name': '{name}' is one of OpenAI's voices; choose another name.",
        )
    if name.casefold() == DEFAULT_VOICE:
        raise VoiceRefused(
            "name",
            "voice_name_taken",
            f"Invalid 'name': '{name}' stands for the server's first voice; choose another name.",
        )
