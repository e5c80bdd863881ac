"""Bearer keys, as headers carry them and as browsers must smuggle them."""

from __future__ import annotations

from collections.abc import Iterable

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
