"""What the README draws is what the code does."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from realtime.session.table import LISTENING, SPEAKING, draw

README = Path(__file__).resolve().parents[1] / "README.md"


@pytest.mark.parametrize("table", [LISTENING, SPEAKING], ids=["listening", "speaking"])
def test_the_diagrams_are_those_of_the_tables(table: dict[tuple[Enum, Enum], Any]) -> None:
    assert f"```mermaid\n{draw(table)}\n```" in README.read_text(encoding="utf-8")
