"""A voice that cannot keep up with one listener: its replies have gaps, and no error says why."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

log = logging.getLogger(__name__)

_INTERVAL_S = 5.0  # capacity is measured over longer


async def watch_voices(streams: Callable[[], Mapping[str, float]]) -> None:
    """Warn, once for each stage, of one that makes sound more slowly than it is heard.

    streams: of each stage that was measured, how many listeners it serves in real time.
    """
    told = set[str]()
    while True:
        await asyncio.sleep(_INTERVAL_S)
        for stage, listeners in streams().items():
            if listeners < 1 and stage not in told:
                told.add(stage)
                log.warning(
                    "the voice (stage %s) makes %.2f s of sound a second: it cannot keep up with "
                    "one listener, and every reply will have gaps; give it a faster device or a "
                    "smaller model",
                    stage,
                    listeners,
                )
