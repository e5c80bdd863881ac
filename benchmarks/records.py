"""What a started server wrote down of its sessions: where time went, and what prompts held.

A server with `server.record_dir` records every session; a record tells what no client can see.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realtime.runtime.codec import decode
from realtime.session.effects import Effect, Observe, PromptMessage, StartReply
from realtime.session.ledger import TurnTimeline

WAIT_S = 5.0  # a record is flushed every second, and closed when its client has gone
POLL_S = 0.1


@dataclass(slots=True)
class SessionRecord:
    """timelines: by response. prompts: of every reply that was begun, drafts too, in order."""

    timelines: dict[str, TurnTimeline] = field(default_factory=dict[str, TurnTimeline])
    prompts: list[tuple[PromptMessage, ...]] = field(
        default_factory=list[tuple[PromptMessage, ...]]
    )


def read_all(folder: Path) -> list[SessionRecord]:
    """Every record of a folder, once nobody writes to one any more."""
    _settle(folder)
    return [read(path) for path in sorted(folder.glob("**/*")) if path.is_file()]


def read(path: Path) -> SessionRecord:
    """One record. Lines that are cut off in mid-write are none."""
    record = SessionRecord()
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            body: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        for encoded in body.get("effects", ()):
            effect: Effect = decode(encoded)
            match effect:
                case Observe(timeline):
                    record.timelines[timeline.response_id] = timeline
                case StartReply():
                    record.prompts.append(effect.messages)
                case _:
                    pass
    return record


def _settle(folder: Path) -> None:
    end_s, size = time.monotonic() + WAIT_S, -1
    while time.monotonic() < end_s:
        now = sum(path.stat().st_size for path in folder.glob("**/*") if path.is_file())
        if now == size:
            return
        size = now
        time.sleep(POLL_S * 15)
