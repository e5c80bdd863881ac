"""All that opens a server: its keys, and the client secrets that they have signed."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from realtime.access.client_secret import (
    PREFIX,
    ClientSecret,
    SecretExpired,
    SecretInvalid,
    derive_signing_key,
    sign,
    verify,
)
from realtime.access.denial import Denied

_RANDOM_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Pass:
    """Who came in.

    key: which of the server's keys stands behind it, counted from 0; None where there are none.
    session: the session that a client secret brings, as its maker sent it.
    """

    key: int | None = None
    session: Mapping[str, Any] | None = None


class KeyRing:
    """keys: of the configuration. Without any, everybody may come in.

    A secret stands and falls with the key that made it, so a key can be replaced while another
    still holds. Without keys secrets are signed by chance, and end with the process.
    """

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._keys = tuple(key.encode() for key in keys)
        self._signing = tuple(derive_signing_key(key) for key in keys) or (
            secrets.token_bytes(_RANDOM_KEY_BYTES),
        )

    @property
    def is_open(self) -> bool:
        return not self._keys

    def find(self, shown: str | None) -> int | None:
        """Which of the keys this is.

        Each is compared in constant time, so that the answer's timing tells nothing.
        """
        text = (shown or "").encode("utf-8", "surrogateescape")
        matches = [hmac.compare_digest(text, key) for key in self._keys]
        return matches.index(True) if True in matches else None

    def admit_key(self, shown: str | None) -> Pass:
        """Let a key in, but no secret. Raises Denied."""
        if self.is_open:
            return Pass()
        key = self.find(shown)
        if key is not None:
            return Pass(key)
        if shown is not None and shown.startswith(PREFIX):
            raise Denied(401, "invalid_api_key", "A client secret cannot do this: show a key.")
        raise Denied(
            401, "invalid_api_key", "This server wants one of its keys, as a bearer token."
        )

    def admit(self, shown: str | None, now_s: float) -> Pass:
        """Let a key or a client secret in. Raises Denied."""
        key = self.find(shown)
        if key is not None:
            return Pass(key)
        if shown is not None and shown.startswith(PREFIX):
            return self._admit_secret(shown, now_s)
        if self.is_open:
            return Pass()
        raise Denied(
            401,
            "invalid_api_key",
            "This server wants one of its keys or a client secret, as a bearer token or as the "
            "subprotocol openai-insecure-api-key.KEY.",
        )

    def sign(self, secret: ClientSecret, maker: Pass) -> str:
        """A secret of whoever was let in. Raises SecretTooLong."""
        return sign(secret, self._signing[maker.key or 0])

    def _admit_secret(self, shown: str, now_s: float) -> Pass:
        for index, signing in enumerate(self._signing):
            try:
                secret = verify(shown, signing, now_s)
            except SecretInvalid:
                continue
            except SecretExpired:
                raise Denied(
                    401,
                    "client_secret_expired",
                    "This client secret has expired: ask your application for another.",
                ) from None
            return Pass(None if self.is_open else index, secret.session)
        raise Denied(
            401,
            "invalid_api_key",
            "This client secret is none of this server's, or its key is no longer in use.",
        )
