"""Base64 audio in client events."""

from __future__ import annotations

import binascii
from functools import partial
from typing import Annotated

from pydantic import PlainValidator

from realtime.protocol.problems import Invalid, Problem, invalid, wrong_type

MAX_AUDIO_BYTES = 15 * 1024 * 1024  # what the wire allows in one event
_MAX_TEXT_CHARACTERS = (MAX_AUDIO_BYTES + 2) // 3 * 4


def read_audio(value: object) -> bytes:
    """Strict RFC 4648 base64, padded, without line breaks, to bytes. Raises Invalid."""
    if not isinstance(value, str):
        raise Invalid(partial(wrong_type, expected="a base64 string", value=value))
    if len(value) > _MAX_TEXT_CHARACTERS:
        raise Invalid(_too_long)
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError:  # binascii.Error, or a character beyond ASCII
        raise Invalid(_not_base64) from None


AudioBytes = Annotated[bytes, PlainValidator(read_audio)]


def _too_long(path: str) -> Problem:
    limit_mib = MAX_AUDIO_BYTES // 2**20
    return invalid(path, f"Invalid '{path}'. One event carries at most {limit_mib} MiB of audio.")


def _not_base64(path: str) -> Problem:
    return invalid(
        path,
        f"Invalid '{path}'. Expected base64-encoded audio bytes in the session's input format "
        "(mono PCM16 at 24kHz unless configured otherwise) but got an invalid value.",
    )
