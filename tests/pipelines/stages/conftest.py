"""A Higgs voice of a few kilobytes, written once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipelines.stages.higgs_driving import Driver, speaker, write_voice


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only read by the tests."""
    return write_voice(tmp_path_factory.mktemp("higgs"))


@pytest.fixture(scope="module")
def voice(checkpoint: Path) -> Iterator[Driver]:
    """Draws by chance; nothing of one request may be heard in the next."""
    driver = Driver(speaker(checkpoint))
    yield driver
    driver.close()
