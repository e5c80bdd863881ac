"""From the onset of an interrupting voice to the end of the agent's audible speech.

The agent is asked, in writing, for something long; once it has been heard for a while, a
recording is said over it. The listener obeys `speech_started`, as a browser does.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass

from benchmarks import options
from benchmarks.exchange import Talker, introduce
from benchmarks.recordings import Recording, load
from benchmarks.report import print_table, spread, write_json
from benchmarks.server import serving
from benchmarks.voice_to_voice import UNSUITABLE
from realtime.commands.wire_client import open_client

REQUEST = (
    "Tell me a long story about a ship in a storm, in at least eight sentences. Do not stop early."
)
HEARD_FIRST_MS = 1500  # the agent is interrupted in the middle of its speech, not at its start
SPEECH_LIMIT_MS = 30_000
ATTEMPTS = 3  # a reply may end before the interruption; then it measures nothing


@dataclass(frozen=True, slots=True)
class BargeIn:
    recording: str
    stop_ms: float | None  # None: it did not stop
    status: str | None
    stray: tuple[str, ...]


def main() -> None:
    chosen = _arguments()
    recordings = load(chosen.folder, unwanted=UNSUITABLE, limit=chosen.count)
    with serving(chosen.url, chosen.config) as server:
        results = [asyncio.run(_interrupt(server.url, r)) for r in recordings]
        memory_mib = server.memory_mib()
    print_table(
        ("recording", "stop", "response"), [(r.recording, r.stop_ms, r.status) for r in results]
    )
    stops = [r.stop_ms for r in results if r.stop_ms is not None]
    figures = spread(stops)
    if figures:
        print(
            f"\nbarge-in: median {figures['median']:.0f} ms, p95 {figures['p95']:.0f}, from "
            f"{figures['min']:.0f} to {figures['max']:.0f} (n {len(stops)})"
        )
    print(f"yielded: {len(stops)} of {len(results)}")
    print(f"events of a response after its done: {sum(len(r.stray) for r in results)}")
    write_json(
        "barge_in",
        {
            "stop_ms": figures,
            "yielded": len(stops),
            "interruptions": [
                {"recording": r.recording, "stop_ms": r.stop_ms, "status": r.status}
                for r in results
            ],
            "memory_mib": memory_mib,
        },
        chosen.json,
    )


def _arguments() -> argparse.Namespace:
    parser = options.parser(__doc__)
    options.add_recordings(parser, count=20)
    options.add_server(parser)
    return parser.parse_args()


async def _interrupt(url: str, recording: Recording) -> BargeIn:
    result = BargeIn(recording.name, None, "the reply was too short", ())
    for _ in range(ATTEMPTS):
        result = await _attempt(url, recording)
        if result.status != "the reply was too short":
            break
    return result


async def _attempt(url: str, recording: Recording) -> BargeIn:
    voiced = recording.pcm[recording.first_voiced :]
    async with open_client(url) as client:
        talker = Talker(client)
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(talker.listen())
            await introduce(client)
            content = [{"type": "input_text", "text": REQUEST}]
            await client.send(
                "conversation.item.create",
                item={"type": "message", "role": "user", "content": content},
            )
            await client.send("response.create")
            await client.feed_silence(lambda: _is_heard(talker), SPEECH_LIMIT_MS)
            begin = await talker.say(voiced)
            onset_ms = client.spoken_at_ms(begin)
            was_speaking = talker.playback.end_ms > onset_ms or bool(talker.flushes_ms)
            await talker.be_silent(600)
            listening.cancel()
    first = talker.log.turns[0] if talker.log.turns else None
    stops = [at_ms - onset_ms for at_ms in talker.flushes_ms if at_ms >= onset_ms]
    status = first.status if first and was_speaking else "the reply was too short"
    return BargeIn(recording.name, stops[0] if stops else None, status, tuple(talker.stray))


def _is_heard(talker: Talker) -> bool:
    """Whether the agent has been audible for long enough."""
    segments = talker.playback.segments
    return bool(segments) and talker.client.now_ms() - segments[0].start_ms > HEARD_FIRST_MS


if __name__ == "__main__":
    main()
