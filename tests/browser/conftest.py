"""Servers and browsers, shared by all tests of this folder and gone when they are over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
import yaml

from tests.browser.chromium import find_chromium
from tests.browser.stage import Stage, Visit, open_stage
from tests.browser.talk import Talk
from tests.sdk.parley_process import ROOT, parley_process, scripted_settings
from tests.sdk.scripted_words import scripted_words
from tests.spoken import Pcm, spoken

PATIENCE_S = 60.0  # for the voice to load and to say a line


@pytest.fixture(scope="package")
def stage() -> Iterator[Stage]:
    find_chromium()  # says what to do where there is none
    with open_stage() as opened:
        yield opened


@pytest.fixture
def visit(stage: Stage) -> Iterator[Callable[..., Visit]]:
    """Opens pages; what went wrong in them unseen fails the test in the end."""
    with ExitStack() as visits:

        def open_visit(*arguments: Any, **options: Any) -> Visit:
            return visits.enter_context(stage.visit(*arguments, **options))

        yield open_visit


@pytest.fixture
def talk(visit: Callable[..., Visit]) -> Callable[..., Talk]:
    """Opens a page and gives what a user does there."""
    return lambda *arguments, **options: Talk(visit(*arguments, **options))


@pytest.fixture(scope="package")
def embedded_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """configs/embedded.yaml, whatever it has for defaults."""
    settings = yaml.safe_load((ROOT / "configs" / "embedded.yaml").read_text())
    with parley_process(settings, tmp_path_factory.mktemp("embedded")) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="package")
def words_url() -> Iterator[str]:
    with scripted_words() as url:
        yield url


@pytest.fixture(scope="package")
def open_settings(words_url: str) -> dict[str, Any]:
    """No models and no keys: hears by loudness, speaks in tones, says what it is told to."""
    settings: dict[str, Any] = scripted_settings(words_url)
    settings["server"] = {"max_sessions": 100}
    return settings


@pytest.fixture(scope="package")
def scripted_url(
    open_settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with parley_process(open_settings, tmp_path_factory.mktemp("scripted")) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="package")
def say_lines() -> Iterator[Callable[[str], Pcm]]:
    """The embedded voice, alike each time, as int16 at the wire's rate; each line is made once."""
    lines: dict[str, Pcm] = {}
    # A thread of its own: Playwright's event loop runs in the test's.
    with ThreadPoolExecutor(1) as thread:

        def say(text: str) -> Pcm:
            if text not in lines:
                lines[text] = thread.submit(asyncio.run, spoken(text)).result(PATIENCE_S)
            return lines[text]

        yield say
