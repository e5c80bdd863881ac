"""What scenarios are made of. `scripts/steps.py` says what a step is."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from realtime.commands.wire_client import Pcm
from tests.live_server import silence, tone

Step: TypeAlias = dict[str, Any]

PIECE_MS = 100  # of sound, per append
FORCED = {"type": "function", "name": "get_weather"}
SERVER_VAD = {"type": "server_vad", "silence_duration_ms": 300}
TRANSCRIPTION = {"model": "whisper-1", "language": "en"}
SCRIPTED, DEAF = "scripted", "deaf"  # servers: one that does all, one whose recogniser fails


@dataclass(frozen=True, slots=True)
class Scenario:
    """session: the first settings of an agents SDK, by the names of its language.

    connect: how the plain SDKs open the connection; secret: what they ask a client secret for.
    server: which of the servers it is played against.
    """

    name: str
    steps: list[Step]
    connect: dict[str, Any] = field(default_factory=lambda: {"model": "parley"})
    session: dict[str, Any] = field(default_factory=dict[str, Any])
    has_tool: bool = False
    secret: dict[str, Any] | None = None
    server: str = SCRIPTED


def send(kind: str, **members: Any) -> Step:
    return {"send": {"type": kind, **members}}


def until(*kinds: str) -> Step:
    return {"until": list(kinds)}


def says(text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content}


def types(text: str) -> list[Step]:
    return [send("conversation.item.create", item=says(text)), send("response.create")]


def update(**members: Any) -> list[Step]:
    update = send("session.update", session={"type": "realtime", **members})
    return [update, until("session.updated")]


def sound(pcm: Pcm, *, is_paced: bool = False) -> list[Step]:
    """is_paced: at the pace of a microphone."""
    data = pcm.tobytes()
    size = 2 * 24 * PIECE_MS
    steps: list[Step] = []
    for start in range(0, len(data), size):
        steps.append({"audio": base64.b64encode(data[start : start + size]).decode()})
        if is_paced:
            steps.append({"pause_ms": PIECE_MS})
    return steps


def utterance() -> list[Step]:
    return [step for pcm in (silence(300), tone(900), silence(1200)) for step in sound(pcm)]


INTERRUPTION = [{"pause_ms": 500}, *sound(tone(900), is_paced=True), *sound(silence(1200))]
