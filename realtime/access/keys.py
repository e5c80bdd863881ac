"""Bearer keys, as headers carry them and as browsers must smuggle them."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence

MIN_KEY_CHARACTERS = 16  # shorter keys can be guessed over the network
KEY_SUBPROTOCOL = "openai-insecure-api-key."  # how browsers send a key: they cannot set headers


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


def is_admitted(key: str | None, keys: Sequence[str]) -> bool:
    """Whether the key opens the door; with no keys configured everybody may come in.

    Every configured key is compared in constant time, so that the answer's timing tells nothing.
    """
    if not keys:
        return True
    shown = (key or "").encode("utf-8", "surrogateescape")
    matches = [hmac.compare_digest(shown, known.encode()) for known in keys]
    return any(matches)
