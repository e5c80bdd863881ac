"""A writer over the stand-in for the engine, as a worker process makes it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines.stages.llm_sglang import SGLangWriter
from pipelines.stages.llm_sglang_arguments import SGLangOptions
from pipelines.stages.llm_sglang_prompt import Prompts
from tests.pipelines.stages.sglang_model import FakeEngine


def create_writer(*, folder: str) -> SGLangWriter:
    """Says Yes.; to "endless" it says x without end, and at "die" its engine dies."""
    prompts = Prompts.load(Path(folder))

    def answer(ids: list[int], _sampling: dict[str, Any]) -> Sequence[int] | None:
        asked = prompts.decode(ids)
        if "die" in asked:
            os.kill(os.getpid(), signal.SIGQUIT)  # as the engine's watchdog does
        return None if "endless" in asked or "die" in asked else prompts.encode("Yes.<|im_end|>")

    return SGLangWriter(
        SGLangOptions(Path(folder), 0.3, context_tokens=4096),
        make_engine=lambda _options: FakeEngine(answer, context_tokens=10**9),
        load_prompts=lambda _folder: prompts,
    )
