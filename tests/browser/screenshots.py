"""Pictures of the page's main states, at two sizes, in light and in dark, from a real conversation.

    .venv/bin/python -m tests.browser.screenshots FOLDER

With the embedded models, which are spoken to in their own voice.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from tests.browser.stage import DESKTOP, PHONE, Stage, open_stage
from tests.browser.talk import Talk
from tests.sdk.parley_process import ROOT, parley_process
from tests.spoken import Pcm, spoken

FIRST_QUESTION = "What is the capital of France?"
SECOND_QUESTION = "Can you tell me about the history of Paris?"
INTERRUPTION = "Stop now please. What is the capital of Italy?"
SHARPNESS = 2  # pixels of the picture per pixel of the page: as on phones and good screens
WORDS_HEARD = 20  # characters: far enough into a reply for a picture
LEAD_MS = 500  # words run this far ahead of their sound: some are there to be struck


def spoken_lines() -> tuple[Pcm, Pcm, Pcm]:
    async def say() -> tuple[Pcm, Pcm, Pcm]:
        return (
            await spoken(FIRST_QUESTION),
            await spoken(SECOND_QUESTION),
            await spoken(INTERRUPTION),
        )

    return asyncio.run(say())


def wait_heard_some(page: Talk, number: int) -> None:
    page.wait_bubble("assistant", number)
    page.wait_state("speaking")
    page.wait_that(
        """([number, characters]) => {
          const replies = parley.items.filter((item) => item.role === 'assistant');
          return replies[number]?.heard >= Math.min(characters, replies[number].text.length);
        }""",
        [number, WORDS_HEARD],
    )


def picture_conversation(
    stage: Stage, url: str, folder: Path, name: str, lines: tuple[Pcm, Pcm, Pcm], **options: Any
) -> None:
    first, second, interruption = lines
    with stage.visit(url, device_scale_factor=SHARPNESS, **options) as visit:
        page = Talk(visit)

        def take(state: str) -> None:
            visit.page.screenshot(path=folder / f"{name}-{state}.png", animations="disabled")

        page.keep_settings({"leadMs": LEAD_MS})
        take("1-idle")
        page.start()
        page.say_aloud(first)
        page.wait_state("hearing")
        take("2-hearing")
        wait_heard_some(page, 0)
        take("3-speaking")
        page.wait_state("listening")
        page.say_aloud(second)
        wait_heard_some(page, 1)
        page.say_aloud(interruption)
        visit.page.locator("#conversation :is(s, del)").first.wait_for()
        wait_heard_some(page, 2)
        take("4-interrupted")
        page.wait_state("listening")
        visit.page.locator("#open-latency").click()
        take("5-latency")
        visit.page.keyboard.press("Escape")
        visit.page.locator("#open-settings").click()
        visit.page.locator("dialog#settings[open]").wait_for()
        take("6-settings")


def picture_problem(stage: Stage, url: str, folder: Path, name: str, **options: Any) -> None:
    with stage.visit(
        url, may_listen=False, is_fed=False, device_scale_factor=SHARPNESS, **options
    ) as visit:
        visit.page.locator("#talk").click()
        Talk(visit).problem()
        visit.page.screenshot(path=folder / f"{name}-7-denied.png")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    lines = spoken_lines()  # before the browser's loop runs
    settings = yaml.safe_load((ROOT / "configs" / "embedded.yaml").read_text())
    with ExitStack() as stack:
        own = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = stack.enter_context(parley_process(settings, own))
        stage = stack.enter_context(open_stage())
        for size, screen in {"desktop": DESKTOP, "phone": PHONE}.items():
            for scheme in ("light", "dark"):
                url, name = f"http://127.0.0.1:{port}", f"{size}-{scheme}"
                options: dict[str, Any] = {**screen, "color_scheme": scheme}
                picture_conversation(stage, url, folder, name, lines, **options)
                picture_problem(stage, url, folder, name, **options)
    sys.stdout.write(f"{len(list(folder.glob('*.png')))} pictures in {folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
