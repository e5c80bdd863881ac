from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.positions import Positions
from tests.pipelines.waiting import UNHURRIED


def test_chunk_ends_are_exact_and_the_rest_is_in_proportion() -> None:
    positions = Positions()
    positions.add(10, 20)
    positions.add(5, 25)
    assert [positions.to_display(n) for n in (0, 5, 10, 11, 15, 99)] == [0, 10, 20, 21, 25, 25]


def test_what_cannot_be_spoken_goes_with_what_came_before() -> None:
    positions = Positions()
    positions.skip(3)
    assert positions.to_display(0) == 0
    positions.add(10, 13)
    positions.skip(17)
    positions.add(4, 21)
    assert [positions.to_display(n) for n in (9, 10, 12, 14)] == [12, 17, 19, 21]


CHUNKS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), max_size=10)


@UNHURRIED
@given(CHUNKS)
def test_positions_never_go_back_and_end_at_the_end(chunks: list[tuple[int, int]]) -> None:
    positions = Positions()
    display = spoken = 0
    for spoken_chars, display_chars in chunks:
        display += display_chars
        if spoken_chars:
            positions.add(spoken_chars, display)
        else:
            positions.skip(display)
        spoken += spoken_chars
    covered = [positions.to_display(n) for n in range(spoken + 1)]
    assert covered == sorted(covered)
    assert spoken == 0 or covered[-1] == display
