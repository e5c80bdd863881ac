"""A worker's lines stand in the server's log as if they were its own."""

from __future__ import annotations

import logging
import re

import pytest

from tests.pipelines.runtime.worker_driving import say, serving
from tests.pipelines.waiting import check

STAMP = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")


def test_a_worker_logs_as_the_server_does_and_not_each_request(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        async with serving("talkative", name="llm") as stage:
            assert await say(stage, "a") == ["a"]

    with caplog.at_level(logging.INFO):
        check(main)
    lines = capfd.readouterr().err.splitlines()
    assert all(STAMP.match(line) for line in lines)
    assert [STAMP.sub("", line) for line in lines] == [
        "WARNING llm: odd answer to a",
        "INFO llm: said a",
    ]
