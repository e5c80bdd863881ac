"""Sessions per key, and the bucket that slows floods down."""

from __future__ import annotations

import pytest

from realtime.access.quota import QuotaSpent, SessionQuota
from realtime.access.rate import TokenBucket


def test_each_key_has_its_own_sessions() -> None:
    quota = SessionQuota(2)
    with quota.hold(0), quota.hold(0), quota.hold(1):
        with pytest.raises(QuotaSpent, match=r"All 2 sessions of this key are in use"):
            quota.hold(0).__enter__()
        with quota.hold(1):
            assert (quota.count(0), quota.count(1)) == (2, 2)
    assert (quota.count(0), quota.count(1)) == (0, 0)


def test_a_session_that_fails_gives_its_place_back() -> None:
    quota = SessionQuota(1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), quota.hold(0):
            raise ZeroDivisionError
    assert quota.count(0) == 0


def test_sessions_without_a_key_or_a_limit_are_not_counted() -> None:
    with SessionQuota(1).hold(None):
        pass
    quota = SessionQuota(1)
    with quota.hold(None), quota.hold(None), quota.hold(0):
        assert quota.count(0) == 1
    unlimited = SessionQuota(None)
    with unlimited.hold(0), unlimited.hold(0):
        pass


def test_a_burst_is_free_and_what_follows_comes_at_the_rate() -> None:
    bucket = TokenBucket(per_second=10, burst=3)
    assert [bucket.take(0.0) for _ in range(6)] == [0, 0, 0, 100, 200, 300]


def test_a_caller_that_waits_as_told_goes_at_exactly_the_rate() -> None:
    bucket, now_ms = TokenBucket(per_second=200, burst=400), 0.0
    for _ in range(2400):
        now_ms += bucket.take(now_ms)
    assert now_ms == pytest.approx(10_000)  # 2000 beyond the burst, 200 a second


def test_idle_time_earns_no_more_than_a_burst() -> None:
    bucket = TokenBucket(per_second=10, burst=3)
    bucket.take(0.0)
    delays = [bucket.take(3_600_000.0) for _ in range(4)]
    assert delays == [0, 0, 0, 100]
