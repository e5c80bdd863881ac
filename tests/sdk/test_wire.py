"""Every scenario of every SDK ends, and every event of it is what the protocol says."""

from __future__ import annotations

import pytest

from tests.sdk.runs import Run, Runs
from tests.sdk.sdks import SDKS
from tests.sdk.strict_events import faults
from tests.wire_invariants import check_order

ANSWERED_WITH_ERRORS = ("refusal", "failure", "deaf_ears")
PLAYED = [(sdk.name, scenario.name) for sdk in SDKS.values() for scenario in sdk.scenarios]


@pytest.fixture
def run(runs: Runs, sdk_name: str, scenario_name: str) -> Run:
    return runs.of(sdk_name)[scenario_name]


@pytest.mark.parametrize(("sdk_name", "scenario_name"), PLAYED)
class TestEachRun:
    def test_the_sdk_plays_it_to_its_end(self, run: Run) -> None:
        assert not run.told("failed"), "\n".join(run.told("failed"))
        assert run.told("done"), run.log.path

    def test_every_event_is_what_its_type_declares(self, run: Run) -> None:
        wrong = [fault for event in run.log.events("server") for fault in faults(event)]
        assert not wrong, "\n".join(dict.fromkeys(wrong))

    def test_the_order_keeps_every_promise(self, run: Run) -> None:
        connections = run.log.by_connection()
        assert len(connections) == 1
        for events in connections.values():
            check_order(events, is_whole=False)

    def test_the_sdk_hands_over_what_was_sent(self, run: Run) -> None:
        sent = run.log.events("server")
        # What came after the SDK was told to leave need not be handed over.
        assert run.seen == sent[: len(run.seen)], run.log.path
        assert len(run.seen) > 0

    def test_nobody_is_told_of_an_error_without_need(self, run: Run) -> None:
        if run.scenario.name not in ANSWERED_WITH_ERRORS:
            assert run.log.events("server", "error") == []
            own = [line["error"] for line in run.lines if line.get("sdk") == "error"]
            assert not own, own

    def test_no_schema_of_the_sdk_refuses_an_event(self, run: Run) -> None:
        assert "ignored" not in run.told("sdk"), [
            line["error"] for line in run.lines if line.get("sdk") == "ignored"
        ]
