"""What is dear is made once, and the cache stays within its bounds."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipelines.higgs.cloning.cache import CacheLimits, ReferenceCache

WAIT_S = 10  # a bound on what is over in no time


def cache(items: int = 8, total_bytes: int = 100) -> ReferenceCache[str, bytes]:
    return ReferenceCache(CacheLimits(items, total_bytes), len)


def never() -> bytes:
    raise AssertionError("made again")


def test_what_was_used_longest_ago_goes_first() -> None:
    kept = cache(items=2)
    kept.get("a", lambda: b"a")
    kept.get("b", lambda: b"b")
    assert kept.get("a", never) == b"a"
    kept.get("c", lambda: b"c")
    assert kept.get("a", never) == b"a"
    assert kept.get("b", lambda: b"again") == b"again"
    assert len(kept) == 2


def test_bytes_are_counted() -> None:
    kept = cache()
    for key in "abc":
        kept.get(key, lambda: b"." * 40)
    assert (len(kept), kept.total_bytes) == (2, 80)
    kept.get("whole", lambda: b"." * 100)
    assert (len(kept), kept.total_bytes) == (1, 100)


@pytest.mark.parametrize("kept", [cache(total_bytes=5), cache(items=0)])
def test_what_does_not_fit_is_handed_on(kept: ReferenceCache[str, bytes]) -> None:
    assert kept.get("large", lambda: b"......") == b"......"
    assert kept.get("large", lambda: b"another") == b"another"
    assert (len(kept), kept.total_bytes) == (0, 0)


def ask_while_making(fails: bool) -> tuple[list[object], int]:
    """Four ask for one key; the first is still making it when the others come."""
    kept, begun, go = cache(), threading.Event(), threading.Event()
    made = 0

    def make() -> bytes:
        nonlocal made
        made += 1
        begun.set()
        assert go.wait(WAIT_S)
        if fails:
            raise OSError("gone")
        return b"value"

    def ask(asked: threading.Event | None = None) -> object:
        if asked:
            asked.set()
        try:
            return kept.get("key", make)
        except OSError as error:
            return str(error)

    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(ask)
        assert begun.wait(WAIT_S)
        comings = [threading.Event() for _ in range(3)]
        others = [threads.submit(ask, coming) for coming in comings]
        assert all(coming.wait(WAIT_S) for coming in comings)
        assert kept.get("another", lambda: b"at once") == b"at once"  # nobody else waits
        go.set()
        found = [each.result(WAIT_S) for each in (first, *others)]
    return found, made


def test_those_who_ask_at_once_share_one_making() -> None:
    assert ask_while_making(fails=False) == ([b"value"] * 4, 1)


def test_those_who_ask_at_once_share_its_error() -> None:
    found, _ = ask_while_making(fails=True)  # one who comes behind the failure tries anew
    assert found == ["gone"] * 4


def test_a_failure_is_not_kept() -> None:
    kept = cache()

    def fail() -> bytes:
        raise OSError

    with pytest.raises(OSError):
        kept.get("key", fail)
    assert kept.get("key", lambda: b"now") == b"now"
