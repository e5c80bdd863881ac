"""The page's jitter buffer: every sample once, no step, and a wait that fits the network."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.web.node_script import run_script

Samples = npt.NDArray[np.float64]

RATE_HZ = 8000  # few samples, and 5 ms are 40 of them
FADE = 40
MS = 8  # samples in one
BLOCK = 16
# Between two samples of a raised cosine that opens within FADE.
STEEPEST = np.pi / 2 / FADE * 1.01

# Sound is a count from 1 on, or ones; an operation is a name and what it needs.
_RUN = """
const buffer = new JitterBuffer(rateHz);
const counts = {};
const output = [];
const events = [];
const cleared = [];
const states = [];
for (const [name, first, second] of operations) {
  if (name === 'push') {
    const start = counts[first] ?? 0;
    counts[first] = start + second;
    const sample = (_, n) => (isCount ? start + n + 1 : 1);
    buffer.push(first, Float32Array.from({ length: second }, sample));
  } else if (name === 'pull') {
    for (let left = first; left > 0; left -= block) {
      const samples = new Float32Array(block);
      buffer.pull(samples);
      const told = buffer.takeEvents();
      events.push(...told.map((event) => ({ ...event, at: output.length + event.at })));
      output.push(...samples);
    }
  } else if (name === 'clear') {
    cleared.push(buffer.clear());
  } else if (name === 'look') {
    states.push({
      targetMs: buffer.targetMs,
      starvations: buffer.starvations,
      isSounding: buffer.isSounding,
      bufferedMs: buffer.bufferedMs,
      first: buffer.first,
    });
  } else {
    buffer[name](first);
  }
}
return { output, events, cleared, states };
"""


@dataclass(frozen=True, slots=True)
class Played:
    output: Samples
    events: list[dict[str, Any]]
    cleared: list[dict[str, Any] | None]
    states: list[dict[str, Any]]

    def names(self) -> list[tuple[str, str]]:
        return [(event["type"], event["id"]) for event in self.events]


def play(*operations: tuple[Any, ...], is_count: bool = False) -> Played:
    result = run_script(
        "client/sound/jitter-buffer.js",
        "JitterBuffer",
        _RUN,
        rateHz=RATE_HZ,
        block=BLOCK,
        isCount=is_count,
        operations=operations,
    )
    return Played(**{**result, "output": np.array(result["output"])})


def largest_step(samples: Samples) -> float:
    return float(np.abs(np.diff(samples, prepend=0, append=0)).max())


def trickle(item: str, count: int) -> list[tuple[Any, ...]]:
    """Sound in time: 20 ms come, 20 ms are played."""
    return [("push", item, 20 * MS), ("pull", 20 * MS)] * count


def test_an_item_waits_for_the_target() -> None:
    played = play(("push", "a", 39 * MS), ("pull", 160), ("push", "a", MS), ("pull", 160))
    assert not played.output[:160].any()
    assert played.names() == [("started", "a")]
    assert played.events[0]["at"] == 160


def test_a_finished_item_waits_for_nothing() -> None:
    played = play(("push", "a", 20 * MS), ("finish", "a"), ("pull", 320))
    assert played.names() == [("started", "a"), ("ended", "a")]
    assert played.events[1]["played"] == 20 * MS
    assert played.output[: 20 * MS].sum() > 100
    assert not played.output[20 * MS :].any()


def test_every_sample_comes_once_and_in_order() -> None:
    sizes = [320, 7, 1, 200, 33, 480]
    pushes = [("push", "a", size) for size in sizes]
    played = play(*pushes, ("finish", "a"), ("pull", 1200), is_count=True)
    whole = np.arange(1, sum(sizes) + 1)
    inner = slice(FADE, sum(sizes) - FADE)
    assert np.array_equal(played.output[: sum(sizes)][inner], whole[inner])
    assert not played.output[sum(sizes) :].any()


def test_no_edge_is_a_step() -> None:
    played = play(
        ("push", "a", 400), ("pull", 480),  # runs dry
        ("push", "a", 640), ("pull", 320), ("finish", "a"), ("pull", 640),  # ends
        ("push", "b", 640), ("pull", 160), ("clear",), ("pull", 160),  # is cleared
        ("push", "c", 640), ("pull", 16), ("clear",), ("pull", 160),  # cleared while it opens
    )  # fmt: skip
    assert largest_step(played.output) <= STEEPEST
    assert played.output.max() == 1


def test_running_dry_loses_nothing() -> None:
    played = play(
        ("push", "a", 400), ("pull", 480), ("push", "a", 640), ("finish", "a"), ("pull", 800),
        is_count=True,
    )  # fmt: skip
    starts = [event["at"] for event in played.events if event["type"] == "started"]
    assert starts == [0, 480]
    assert np.array_equal(played.output[FADE : 400 - FADE], np.arange(FADE + 1, 401 - FADE))
    assert not played.output[400:480].any()
    resumed = played.output[480 : 480 + 640]
    assert np.array_equal(resumed[FADE:-FADE], np.arange(401 + FADE, 1041 - FADE))
    assert played.events[-1] == {"type": "ended", "id": "a", "at": 1120, "played": 1040}


def test_late_sound_makes_the_buffer_wait_longer() -> None:
    dry = [("pull", 4000), ("push", "a", 3200)]
    played = play(("push", "a", 320), *(dry * 9), ("look",))
    [state] = played.states
    assert state["starvations"] == 9
    assert state["targetMs"] == 400  # the most

    [state] = play(("push", "a", 320), *dry, ("look",)).states
    assert state["targetMs"] == 60


def test_after_late_sound_the_new_target_is_waited_for() -> None:
    played = play(
        ("push", "a", 320), ("pull", 400), ("push", "a", 59 * MS), ("pull", 160),
        ("push", "a", MS), ("pull", 160),
    )  # fmt: skip
    assert [event["at"] for event in played.events] == [0, 320, 560]


def test_ten_quiet_seconds_lower_the_target_again() -> None:
    late = [("push", "a", 320), ("pull", 400), ("push", "a", 20 * MS), ("push", "a", 40 * MS)]
    played = play(*late, *trickle("a", 480), ("look",), *trickle("a", 40), ("look",))
    assert [state["targetMs"] for state in played.states] == [60, 54]
    [state] = play(*late, *trickle("a", 3000), ("look",)).states
    assert state["targetMs"] == 40  # the least


def test_an_end_that_is_told_late_is_no_starvation() -> None:
    played = play(("push", "a", 400), ("pull", 480), ("finish", "a"), ("pull", 160), ("look",))
    assert played.names() == [("started", "a"), ("dry", "a"), ("ended", "a")]
    assert played.states[0]["starvations"] == 0


def test_a_hold_is_no_starvation() -> None:
    held = play(
        ("push", "a", 400), ("hold", True), ("pull", 480), ("hold", False),
        ("push", "a", 400), ("pull", 160), ("look",),
    )  # fmt: skip
    assert held.states[0]["starvations"] == 0
    told_late = play(
        ("push", "a", 400), ("pull", 480), ("hold", True), ("hold", False),
        ("push", "a", 400), ("pull", 160), ("look",),
    )  # fmt: skip
    assert told_late.states[0]["starvations"] == 0


def test_the_next_starvation_after_a_hold_counts() -> None:
    played = play(
        ("push", "a", 400), ("hold", True), ("pull", 480), ("hold", False),
        ("push", "a", 400), ("pull", 480), ("push", "a", 400), ("look",),
    )  # fmt: skip
    assert played.states[0]["starvations"] == 1


def test_a_clear_leaves_the_fade_alone() -> None:
    played = play(("push", "a", 800), ("push", "b", 800), ("pull", 160), ("clear",), ("pull", 320))
    assert played.cleared == [{"id": "a", "played": 160 + FADE}]
    assert played.output[160] > 0.99
    assert not played.output[160 + FADE :].any()


def test_a_clear_says_what_waited() -> None:
    assert play(("clear",)).cleared == [None]
    assert play(("push", "a", 80), ("clear",)).cleared == [{"id": "a", "played": 0}]
    dry = play(("push", "a", 400), ("pull", 480), ("clear",))
    assert dry.cleared == [{"id": "a", "played": 400}]


def test_the_next_item_may_follow_within_the_fade_of_a_clear() -> None:
    played = play(
        ("push", "a", 800), ("pull", 160), ("clear",), ("push", "b", 400), ("pull", 480)
    )  # fmt: skip
    assert played.names() == [("started", "a"), ("started", "b"), ("dry", "b")]
    assert played.events[1]["at"] == 160 + FADE
    assert largest_step(played.output) <= STEEPEST


def test_items_play_one_after_another_in_the_order_announced() -> None:
    played = play(
        ("announce", "a"), ("announce", "b"),
        ("push", "b", 400), ("push", "a", 400), ("finish", "a"), ("finish", "b"), ("pull", 960),
    )  # fmt: skip
    assert played.names() == [("started", "a"), ("ended", "a"), ("started", "b"), ("ended", "b")]
    assert played.events[2]["at"] == 400
    assert largest_step(played.output) <= STEEPEST


def test_an_item_that_nobody_finished_does_not_block_the_next() -> None:
    played = play(("push", "a", 400), ("pull", 480), ("push", "b", 400), ("pull", 480))
    assert played.names() == [
        ("started", "a"), ("dry", "a"), ("ended", "a"), ("started", "b"), ("dry", "b"),
    ]  # fmt: skip


def test_any_order_of_events_keeps_every_sample_and_makes_no_step() -> None:
    for seed in range(12):
        random = np.random.default_rng(seed)
        operations: list[tuple[Any, ...]] = []
        pushed = 0
        for _ in range(120):
            size = int(random.integers(1, 400))
            if random.random() < 0.5:
                operations.append(("push", "a", size))
                pushed += size
            else:
                operations.append(("pull", size))
        operations += [("finish", "a"), ("pull", pushed + 800)]
        played = play(*operations)
        assert largest_step(played.output) <= STEEPEST
        assert played.events[-1]["type"] == "ended"
        assert played.events[-1]["played"] == pushed
        positions = [event["played"] for event in played.events]
        assert all(before <= after for before, after in pairwise(positions))
        spans = played.output > 0
        assert pushed - 2 * len(positions) <= int(spans.sum()) <= pushed
