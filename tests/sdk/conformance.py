"""README's table of events and SDKs, from what the recorded runs show."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tests.sdk.runs import Run
from tests.sdk.sdks import SDKS
from tests.sdk.strict_events import faults

BEGIN, END = "<!-- conformance: begin -->", "<!-- conformance: end -->"
YES, NO = "yes", "-"

# What a server that is heard and spoken to over a WebSocket takes and sends. SDKs' types also know
# events of hosted tools, of telephony and of WebRTC; no such event belongs here.
CLIENT_SECRETS = "POST /v1/realtime/client_secrets"
SECRET_AS_KEY = "ek_... instead of a key"
SENT_BY_CLIENTS = (
    "session.update",
    "input_audio_buffer.append",
    "input_audio_buffer.commit",
    "input_audio_buffer.clear",
    "conversation.item.create",
    "conversation.item.retrieve",
    "conversation.item.truncate",
    "conversation.item.delete",
    "response.create",
    "response.cancel",
    CLIENT_SECRETS,
    SECRET_AS_KEY,
)
SENT_BY_SERVERS = (
    "session.created",
    "session.updated",
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "input_audio_buffer.cleared",
    "input_audio_buffer.timeout_triggered",
    "conversation.item.added",
    "conversation.item.done",
    "conversation.item.retrieved",
    "conversation.item.truncated",
    "conversation.item.deleted",
    "conversation.item.input_audio_transcription.delta",
    "conversation.item.input_audio_transcription.completed",
    "conversation.item.input_audio_transcription.failed",
    "response.created",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.delta",
    "response.output_audio_transcript.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.done",
    "error",
)
ROWS = (*SENT_BY_CLIENTS, *SENT_BY_SERVERS)


def shown(runs: Iterable[Run]) -> dict[str, set[str]]:
    """By SDK: the rows that its runs have proved, which were played to their ends.

    A client event counts when the SDK sent it, a server event when the SDK handed it over and it
    is what its type declares.
    """
    found: dict[str, set[str]] = {name: set() for name in SDKS}
    for run in runs:
        proved = found[run.sdk.name]
        if not run.told("done"):
            continue
        proved.update(run.log.kinds("client"))
        proved.update(event["type"] for event in run.seen if not faults(event))
        if run.scenario.secret is not None:
            proved.add(SECRET_AS_KEY)
        if run.told("secret"):
            proved.add(CLIENT_SECRETS)
    return found


def section(proved: dict[str, set[str]]) -> str:
    """What stands between the markers."""
    summary = (
        "Which unmodified SDK has sent and received which event, as <code>tests/sdk</code> shows"
    )
    details = f"<details>\n<summary>{summary}</summary>\n\n{table(proved)}\n\n</details>"
    return f"{BEGIN}\n{details}\n{END}"


def table(proved: dict[str, set[str]]) -> str:
    lines = [
        f"| | {' | '.join(sdk.label for sdk in SDKS.values())} |",
        f"|---|{'---|' * len(SDKS)}",
    ]
    for title, rows in (
        ("**sent by the client**", SENT_BY_CLIENTS),
        ("**sent by the server**", SENT_BY_SERVERS),
    ):
        lines.append(f"| {title} |{' |' * len(SDKS)}")
        for row in rows:
            cells = [YES if row in proved[name] else NO for name in SDKS]
            lines.append(f"| `{row}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def claimed(readme: str) -> dict[str, set[str]]:
    """By SDK: the rows of README's table that say yes. Raises ValueError if there is none."""
    _, inside, _ = _parts(readme)
    found: dict[str, set[str]] = {name: set() for name in SDKS}
    for row, cells in re.findall(r"^\| `([^`]+)` \|(.*)\|$", inside, re.MULTILINE):
        for name, cell in zip(SDKS, cells.split("|"), strict=True):
            if cell.strip() == YES:
                found[name].add(row)
    return found


def write(path: Path, proved: dict[str, set[str]]) -> None:
    """Replace what stands between the markers of a file."""
    before, _, after = _parts(path.read_text())
    path.write_text(f"{before}{section(proved)}{after}")


def _parts(readme: str) -> tuple[str, str, str]:
    """Before the markers, between them, and behind them."""
    before, begin, rest = readme.partition(BEGIN)
    inside, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md has no {BEGIN} ... {END}")
    return before, inside, after
