"""One server, one recorded run per SDK, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sdk.parley_process import deaf_process, parley_process, scripted_settings
from tests.sdk.runs import Runs, set_stage
from tests.sdk.scenarios import DEAF, SCRIPTED
from tests.sdk.scripted_words import scripted_words


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-conformance",
        action="store_true",
        help="write the table of events and SDKs into README.md, from what the runs show",
    )


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    folder = tmp_path_factory.mktemp("sdk")
    with (
        scripted_words() as words_url,
        parley_process(scripted_settings(words_url), folder) as scripted,
        deaf_process(folder) as deaf,
        set_stage({SCRIPTED: scripted, DEAF: deaf}, folder) as stage,
    ):
        yield Runs(stage)
