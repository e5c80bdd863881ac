"""Bearer keys, as headers carry them and as browsers must smuggle them."""

from __future__ import annotations

import re
from collections.abc import Iterable

MIN_KEY_CHARACTERS = 16  # shorter keys can be guessed over the network
# A subprotocol is a token (RFC 7230, 3.2.6): a key of other characters could not be in one.
KEY_SIGNS = "!#$%&'*+-.^_`|~"
_TOKEN = re.compile(f"[0-9A-Za-z{re.escape(KEY_SIGNS)}]+")
KEY_RULE = (
    f"a key needs {MIN_KEY_CHARACTERS} or more characters, of letters, digits and {KEY_SIGNS} "
    "alone; make one with: openssl rand -hex 24"
)
KEY_SUBPROTOCOL = "openai-insecure-api-key."  # how browsers send a key: they cannot set headers


def is_key(text: str) -> bool:
    """Whether clients of every kind can show this key, and strangers cannot guess it."""
    return len(text) >= MIN_KEY_CHARACTERS and _TOKEN.fullmatch(text) is not None


def find_key(authorization: str | None, subprotocols: Iterable[str]) -> str | None:
    """The key that a client shows, or None. The header counts before the subprotocol."""
    if authorization is not None:
        scheme, _, value = authorization.partition(" ")
        if scheme.lower() == "bearer" and value.strip():
            return value.strip()
    for offered in subprotocols:
        if offered.startswith(KEY_SUBPROTOCOL):
            return offered.removeprefix(KEY_SUBPROTOCOL) or None
    return None
