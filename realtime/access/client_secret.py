"""Client secrets: short-lived keys that carry a session's configuration, for browsers and phones.

A secret is its own proof, so nothing is stored and every server with the same keys can read it:

    "ek_" + base64url(HMAC-SHA256(signing key, body) + body), body = deflate(JSON)

without "=", for a browser sends it in a subprotocol, which allows no such character. The JSON is
readable to whoever holds the secret, as the session is to whoever opens it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PREFIX = "ek_"
# Servers and proxies read header lines of 8 KiB; the rest is room for the header's name, for
# "realtime, openai-insecure-api-key." and for a browser's other subprotocols.
MAX_SECRET_CHARACTERS = 7680
MAX_BODY_BYTES = 256 * 1024  # of what this server has signed itself: four times what it accepts

_MAC_BYTES = 32  # HMAC-SHA256
_RAW_DEFLATE = -15  # zlib's code for the largest window without header and checksum
# Tens of milliseconds and 8 MiB a guess: whoever holds a secret can try keys against it at home.
_SCRYPT_COST = {"n": 2**13, "r": 8, "p": 1}
_SALT = b"parley client secret 1"


class SecretInvalid(Exception):
    """Not a secret that this key has signed."""


class SecretExpired(Exception):
    """A secret of this key whose time is over."""


class SecretTooLong(Exception):
    """The session's configuration does not fit into a header. `characters`: what it would take."""

    def __init__(self, characters: int) -> None:
        super().__init__(f"{characters} characters")
        self.characters = characters


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """expires_at_s: unix time. session: the session object as its maker sent it."""

    expires_at_s: int
    session: Mapping[str, Any]


def derive_signing_key(key: str) -> bytes:
    """What signs the secrets made with this key of the server. Slow on purpose: once per start."""
    return hashlib.scrypt(key.encode(), salt=_SALT, dklen=_MAC_BYTES, **_SCRYPT_COST)


def sign(secret: ClientSecret, signing_key: bytes) -> str:
    """The secret as a client shows it. Raises SecretTooLong."""
    body = {"expires_at": secret.expires_at_s, "session": dict(secret.session)}
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    packed = zlib.compress(text.encode(), level=9, wbits=_RAW_DEFLATE)
    value = PREFIX + _encode(_mac(packed, signing_key) + packed)
    if len(value) > MAX_SECRET_CHARACTERS:
        raise SecretTooLong(len(value))
    return value


def verify(value: str, signing_key: bytes, now_s: float) -> ClientSecret:
    """What a shown secret says. Raises SecretInvalid or SecretExpired; reads nothing unsigned."""
    signed = _decode(value)
    mac, packed = signed[:_MAC_BYTES], signed[_MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(packed, signing_key)):
        raise SecretInvalid
    text = zlib.decompressobj(wbits=_RAW_DEFLATE).decompress(packed, MAX_BODY_BYTES)
    body = json.loads(text)
    secret = ClientSecret(body["expires_at"], body["session"])
    if now_s >= secret.expires_at_s:
        raise SecretExpired
    return secret


def _mac(packed: bytes, signing_key: bytes) -> bytes:
    return hmac.digest(signing_key, packed, "sha256")


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(value: str) -> bytes:
    digits = value.removeprefix(PREFIX)
    if digits == value or len(value) > MAX_SECRET_CHARACTERS:
        raise SecretInvalid
    try:
        data = base64.b64decode(digits + "=" * (-len(digits) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise SecretInvalid from None
    if _encode(data) != digits:  # the last character may have spare bits: one spelling counts
        raise SecretInvalid
    return data
