"""Client secrets: signed, short, and read only by those who hold the key."""

from __future__ import annotations

import random
import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.access.client_secret import (
    MAX_SECRET_CHARACTERS,
    ClientSecret,
    SecretExpired,
    SecretInvalid,
    SecretTooLong,
    derive_signing_key,
    sign,
    verify,
)

SIGNING = derive_signing_key("a-key-of-sixteen-characters")
NOW_S = 1_900_000_000
SESSION = {"type": "realtime", "instructions": "Sois bref, s'il te pla\u00eet.", "tools": []}
SECRET = ClientSecret(NOW_S + 600, SESSION)
ALPHABET = string.ascii_letters + string.digits + "-_"


def test_a_secret_says_what_was_put_into_it() -> None:
    assert verify(sign(SECRET, SIGNING), SIGNING, NOW_S) == SECRET


def test_it_has_only_characters_that_a_subprotocol_may_have() -> None:
    # RFC 6455, 4.1: subprotocols are tokens as RFC 9110, 5.6.2 defines them.
    assert re.fullmatch(r"ek_[A-Za-z0-9_-]+", sign(SECRET, SIGNING))


def test_it_ends_in_the_second_that_it_names() -> None:
    value = sign(SECRET, SIGNING)
    assert verify(value, SIGNING, NOW_S + 599.9) == SECRET
    with pytest.raises(SecretExpired):
        verify(value, SIGNING, NOW_S + 600)


def test_the_signing_key_follows_from_the_key_alone() -> None:
    assert derive_signing_key("a-key-of-sixteen-characters") == SIGNING
    assert derive_signing_key("a-key-of-sixteen-characterz") != SIGNING


def test_another_key_neither_reads_nor_dates_it() -> None:
    other = derive_signing_key("another-long-enough-key")
    with pytest.raises(SecretInvalid):
        verify(sign(SECRET, SIGNING), other, NOW_S)
    with pytest.raises(SecretInvalid):
        verify(sign(SECRET, SIGNING), other, NOW_S + 9999)


def test_every_changed_character_is_noticed() -> None:
    value = sign(SECRET, SIGNING)
    for place in range(len(value)):
        other = "B" if value[place] != "B" else "C"
        with pytest.raises(SecretInvalid):
            verify(value[:place] + other + value[place + 1 :], SIGNING, NOW_S)
    last_twin = ALPHABET[(ALPHABET.index(value[-1]) + 1) % len(ALPHABET)]
    for changed in (value[:-1], value + "A", value[:-1] + last_twin, f"{value}=", f"{value}\n"):
        with pytest.raises(SecretInvalid):
            verify(changed, SIGNING, NOW_S)


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_garbage_is_refused(garbage: str) -> None:
    for value in (garbage, f"ek_{garbage}"):
        with pytest.raises(SecretInvalid):
            verify(value, SIGNING, NOW_S)


def test_ordinary_prose_fits_and_what_does_not_is_refused_with_its_size() -> None:
    prose = "Ask for the number of the order, then for the name, and read both back. "
    long = {"type": "realtime", "instructions": prose * 300}
    assert len(sign(ClientSecret(NOW_S, long), SIGNING)) < MAX_SECRET_CHARACTERS
    noise = "".join(random.Random(1).choices(string.ascii_letters, k=12_000))
    with pytest.raises(SecretTooLong) as caught:
        sign(ClientSecret(NOW_S, {"instructions": noise}), SIGNING)
    assert caught.value.characters > MAX_SECRET_CHARACTERS
    with pytest.raises(SecretInvalid):
        verify("ek_" + "A" * 100_000, SIGNING, NOW_S)
