"""Keys and the secrets that they make: who comes in, and on whose account."""

from __future__ import annotations

import pytest

from realtime.access.client_secret import ClientSecret
from realtime.access.denial import Denied
from realtime.access.keyring import KeyRing, Pass

OLD, NEW = "an-old-key-with-many-letters", "a-new-key-with-many-letters"
NOW_S = 1_900_000_000
SECRET = ClientSecret(NOW_S + 60, {"type": "realtime"})


def refusal(ring: KeyRing, shown: str | None, now_s: float = NOW_S) -> Denied:
    with pytest.raises(Denied) as caught:
        ring.admit(shown, now_s)
    assert caught.value.status == 401
    return caught.value


def test_another_server_with_the_same_keys_reads_a_secret() -> None:
    here, there = KeyRing([OLD, NEW]), KeyRing([NEW, OLD])
    value = here.sign(SECRET, here.admit_key(NEW))
    assert there.admit(value, NOW_S) == Pass(0, SECRET.session)
    assert here.admit(value, NOW_S) == Pass(1, SECRET.session)


def test_a_secret_falls_with_the_key_that_made_it() -> None:
    both = KeyRing([OLD, NEW])
    by_old, by_new = (both.sign(SECRET, both.admit_key(key)) for key in (OLD, NEW))
    rotated = KeyRing([NEW])
    assert rotated.admit(by_new, NOW_S).key == 0
    assert refusal(rotated, by_old).code == "invalid_api_key"


def test_an_expired_secret_is_told_from_a_foreign_one() -> None:
    ring = KeyRing([OLD])
    value = ring.sign(SECRET, ring.admit_key(OLD))
    assert refusal(ring, value, NOW_S + 60).code == "client_secret_expired"
    assert refusal(KeyRing([NEW]), value, NOW_S + 60).code == "invalid_api_key"


def test_a_secret_makes_no_further_secrets() -> None:
    ring = KeyRing([OLD])
    value = ring.sign(SECRET, ring.admit_key(OLD))
    with pytest.raises(Denied) as caught:
        ring.admit_key(value)
    assert (caught.value.status, caught.value.code) == (401, "invalid_api_key")


def test_without_keys_everybody_comes_in_but_no_foreign_secret() -> None:
    ring = KeyRing()
    for shown in (None, "dummy", "sk-anything"):
        assert ring.admit(shown, NOW_S) == ring.admit_key(shown) == Pass()
    value = ring.sign(SECRET, Pass())
    assert ring.admit(value, NOW_S) == Pass(None, SECRET.session)
    assert refusal(KeyRing(), value).code == "invalid_api_key"  # of another process
    assert refusal(ring, value, NOW_S + 60).code == "client_secret_expired"


def test_a_key_may_look_like_a_secret() -> None:
    key = "ek_a-key-of-an-odd-operator"
    assert KeyRing([key]).admit(key, NOW_S) == Pass(0)
