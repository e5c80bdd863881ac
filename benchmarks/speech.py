"""Speech over HTTP: how soon, how fast and how much, with so many requests at once.

Each of `--concurrency` clients sends its next text to POST /v1/audio/speech when the one before has
been spoken. No text is sent twice, so nothing can be remembered. A client reads as fast as it is
served; first audio is when the first bytes of sound have come, counted from the sending, and the
real-time factor is the time of the whole request as a part of what it lasts when it is heard.

`--url` may name any server with OpenAI's speech endpoint; one that streams only when it is asked to
is asked with `--extra '{"stream": true}'`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from benchmarks import options
from benchmarks.report import print_table, spread, write_json
from benchmarks.server import serving

CONCURRENCY = (1, 2, 4, 8)
PER_CLIENT = 4  # requests of each client, unless --requests says how many there are in all
RATE_HZ = 24_000  # of OpenAI's pcm; 16-bit little-endian mono
SAMPLE_BYTES = 2
TIMEOUT_S = 300.0  # of a request: a slow voice with many clients is slow, not broken
# What servers call raw samples; of anything else the length says nothing.
RAW_TYPES = ("audio/pcm", "audio/l16", "audio/raw", "application/octet-stream")
ENDPOINT = "/v1/audio/speech"
SHOWN_CHARACTERS = 200  # of an error
COLUMNS = (
    *("at once", "requests", "errors", "requests/s", "first audio p50 ms", "p95 ms"),
    *("RTF p50", "p95", "audio s/s"),
)

# Every text is two of these, in an order of its own: about twenty words, as an answer has.
SENTENCES = (
    "The ferry leaves from the second pier at a quarter past nine.",
    "Most of the bread is gone before the market has really opened.",
    "She kept the letters in a tin box under the stairs.",
    "A cold wind came down from the hills toward evening.",
    "The museum is closed on Mondays and on public holidays.",
    "He repaired the clock with a spring from an old toy.",
    "Rain is expected in the north, with sunshine along the coast.",
    "Our neighbours grow tomatoes on the roof of their garage.",
    "The last train stops at every village on its way.",
    "Nobody remembers who painted the door of the chapel green.",
    "Fresh snow covered the path between the two farms.",
    "The choir rehearses in the school hall every other Thursday.",
    "Please bring the blue folder and two copies of the form.",
    "A heron stood in the shallow water and did not move.",
    "They walked home along the canal, talking about the summer.",
    "The recipe asks for butter, lemon and a little patience.",
    "The library lends out umbrellas when the weather turns.",
    "Her first job was counting passengers on the morning bus.",
    "The old bridge carries bicycles now, and no more lorries.",
    "An owl lives in the tower, and the bells never wake it.",
)


@dataclass(slots=True)
class Spoken:
    """One request that was served. Times in s; sound_s: how long what came lasts."""

    first_s: float
    whole_s: float
    sound_s: float


@dataclass(slots=True)
class Run:
    """All requests of one concurrency. seconds: from the first sending to the last end."""

    concurrency: int
    seconds: float = 0.0
    spoken: list[Spoken] = field(default_factory=list[Spoken])
    errors: list[str] = field(default_factory=list[str])

    def figures(self) -> dict[str, Any]:
        """Rates count what was served; of a run in which nothing was, the spreads are empty."""
        return {
            "concurrency": self.concurrency,
            "requests": len(self.spoken) + len(self.errors),
            "errors": len(self.errors),
            "seconds": self.seconds,
            "requests_per_s": len(self.spoken) / self.seconds,
            "first_audio_ms": spread([one.first_s * 1000 for one in self.spoken]),
            "real_time_factor": spread([one.whole_s / one.sound_s for one in self.spoken]),
            "audio_s_per_s": sum(one.sound_s for one in self.spoken) / self.seconds,
            "error_messages": sorted(set(self.errors))[:10],
        }


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked, but for the text. rate_hz: of the PCM that the server answers with."""

    endpoint: str
    body: dict[str, Any]
    rate_hz: int = RATE_HZ


class _Failed(Exception):
    """A request that brought no sound, or not all of it; says why."""


def texts() -> Iterator[str]:
    """All different, about as long as each other."""
    count = len(SENTENCES)
    for distance in range(1, count):
        for first in range(count):
            yield f"{SENTENCES[first]} {SENTENCES[(first + distance) % count]}"


def endpoint_of(url: str) -> str:
    """Of a server's address, of its /v1, of one of its endpoints, a WebSocket's too."""
    where = urlsplit(url if "://" in url else f"http://{url}")
    scheme = {"ws": "http", "wss": "https"}.get(where.scheme, where.scheme)
    root, _, _ = where.path.partition("/v1")
    return f"{scheme}://{where.netloc}{root.rstrip('/')}{ENDPOINT}"


async def measure(
    client: httpx.AsyncClient, target: Target, concurrency: int, wanted: Sequence[str]
) -> Run:
    """Have all texts spoken, so many at once."""
    run, waiting = Run(concurrency), list(reversed(wanted))
    now_s = asyncio.get_running_loop().time

    async def visit() -> None:
        while waiting:
            try:
                run.spoken.append(await speak(client, target, waiting.pop()))
            except _Failed as failed:
                run.errors.append(str(failed)[:SHOWN_CHARACTERS])

    begun_s = now_s()
    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(visit())
    run.seconds = now_s() - begun_s
    return run


async def speak(client: httpx.AsyncClient, target: Target, text: str) -> Spoken:
    """One request from its sending to its last byte. Raises _Failed."""
    now_s = asyncio.get_running_loop().time
    begun_s = now_s()
    first_s, size_bytes = None, 0
    try:
        body = {**target.body, "input": text}
        async with client.stream("POST", target.endpoint, json=body) as answer:
            if answer.status_code != 200:
                raise _Failed(
                    f"{answer.status_code}: {(await answer.aread()).decode(errors='replace')}"
                )
            kind = answer.headers.get("content-type", "").split(";")[0].strip().lower()
            if kind not in RAW_TYPES:
                raise _Failed(f"the answer is {kind or 'of no type'}, and not pcm")
            async for piece in answer.aiter_bytes():
                if piece and first_s is None:
                    first_s = now_s() - begun_s
                size_bytes += len(piece)
    except httpx.HTTPError as error:
        raise _Failed(f"{type(error).__name__}: {error}") from error
    if first_s is None or size_bytes % SAMPLE_BYTES:
        raise _Failed(f"the answer has {size_bytes} bytes, which are no samples")
    return Spoken(first_s, now_s() - begun_s, size_bytes / SAMPLE_BYTES / target.rate_hz)


def main() -> None:
    chosen = _arguments()
    with serving(chosen.url, chosen.config) as server:
        target = Target(
            endpoint_of(server.url),
            {
                "model": chosen.model,
                "voice": chosen.voice,
                "response_format": "pcm",
                **json.loads(chosen.extra),
            },
            chosen.rate,
        )
        runs = asyncio.run(_measure_all(target, chosen))
    figures = [run.figures() for run in runs]
    print_table(COLUMNS, [_row(figure) for figure in figures])
    for run in runs:
        for message in sorted(set(run.errors)):
            print(f"{run.concurrency} at once: {run.errors.count(message)} times {message}")
    write_json("speech", {"endpoint": target.endpoint, "runs": figures}, chosen.json)
    if not any(run.spoken for run in runs):
        sys.exit("no request was served")


async def _measure_all(target: Target, chosen: argparse.Namespace) -> list[Run]:
    headers = {"Authorization": f"Bearer {chosen.key}"} if chosen.key else {}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    fresh, runs = texts(), list[Run]()
    async with httpx.AsyncClient(headers=headers, timeout=TIMEOUT_S, limits=limits) as client:
        await measure(client, target, 1, [next(fresh)])  # the first request of all opens much
        for concurrency in chosen.concurrency:
            count = chosen.requests or concurrency * PER_CLIENT
            runs.append(
                await measure(client, target, concurrency, [next(fresh) for _ in range(count)])
            )
    return runs


def _arguments() -> argparse.Namespace:
    parser = options.parser(__doc__)
    options.add_server(parser)
    parser.add_argument("--concurrency", type=int, nargs="+", default=list(CONCURRENCY))
    parser.add_argument("--requests", type=int, help=f"of each run; {PER_CLIENT} of each client")
    parser.add_argument("--model", default="parley-tts")
    parser.add_argument("--voice", default="alloy", help="which stands for the default voice")
    parser.add_argument("--key", help="a bearer key of the server")
    parser.add_argument("--rate", type=int, default=RATE_HZ, help="of the server's pcm, in Hz")
    parser.add_argument("--extra", default="{}", help="more fields of the request, as JSON")
    chosen = parser.parse_args()
    needed = 1 + sum(chosen.requests or PER_CLIENT * many for many in chosen.concurrency)
    known = len(SENTENCES) * (len(SENTENCES) - 1)
    if needed > known:
        parser.error(f"{needed} requests want as many texts, and there are {known}")
    return chosen


def _row(figures: dict[str, Any]) -> tuple[object, ...]:
    first, factor = figures["first_audio_ms"], figures["real_time_factor"]
    return (
        figures["concurrency"],
        figures["requests"],
        figures["errors"],
        figures["requests_per_s"],
        first.get("median"),
        first.get("p95"),
        factor.get("median"),
        factor.get("p95"),
        figures["audio_s_per_s"],
    )


if __name__ == "__main__":
    main()
