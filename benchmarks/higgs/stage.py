"""The whole voice on a GPU, under load: `python -m benchmarks.higgs.stage`.

Random weights of the published size, 243 frames (9.72 s of sound) a reply, distinct texts of twenty
words, no reference. For each number of replies at once: seconds of sound made per second; then
streamed, how long until the first sound, and the longest stall of a listener who plays from then
on; then what it takes to abort one of sixteen, and from a further text to its first row.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import torch

from benchmarks.options import parser
from benchmarks.report import percentile, print_table
from pipelines.higgs.assembly import HiggsVoice, Size, assemble, warm_up
from pipelines.higgs.codec.config import CodecConfig, tiny_codec_config
from pipelines.higgs.codec.weights import random_codec
from pipelines.higgs.config import CODEC_RATE_HZ, HiggsConfig
from pipelines.higgs.member import V3
from pipelines.higgs.synthetic.models import full_config, random_parameters, tiny_config
from pipelines.higgs.synthetic.tokenizer import special_ids, synthetic_tokenizer
from pipelines.higgs.text.tokenizer import HiggsTokenizer
from pipelines.runtime.lead import Lead, speech_seconds
from pipelines.runtime.stepped import SteppedStage
from pipelines.stages.higgs_model import HiggsModel
from pipelines.types import SpeakRequest, SpeechDelta

VOICE = "default"
ROWS = 250  # of a reply; seven of them complete the codebooks of the last frame
WORDS = 20
POSITIONS = 2048
WIDEST = 64
ABORTS = 20
EXTENSIONS = 20
BESIDE = 15  # streams that run while another is aborted or goes on

_WORDS = (
    "the quick brown fox jumps over lazy dog while band plays slow waltz in evening rain near "
    "river bank under silver moon and old clock tower rings twelve times before dawn"
).split()

Stage = SteppedStage[SpeakRequest, str, SpeechDelta]


@dataclass(frozen=True, slots=True)
class Played:
    """A reply as it came. first_ms: to the first sound. stall_ms: the longest, of who plays it."""

    audio_s: float
    took_s: float
    first_ms: float
    stall_ms: float
    pieces: int


@dataclass(frozen=True, slots=True)
class Load:
    """So many replies at once; times are medians, but for those that say otherwise."""

    streams: int
    replies: int
    audio_s_per_s: float
    real_time_factor: float
    first_ms: float
    first_p95_ms: float
    longest_stall_ms: float
    pieces: float


def text(chance: random.Random) -> str:
    return " ".join(chance.choice(_WORDS) for _ in range(WORDS)) + "."


def make_voice(device: str, streams: int, is_tiny: bool, is_native: bool) -> HiggsVoice:
    config = HiggsConfig.of(tiny_config() if is_tiny else full_config())
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    parameters = random_parameters(config, device, dtype, 1, typical_rows=None)
    codec = random_codec(tiny_codec_config() if is_tiny else CodecConfig()).to(device)
    tokenizer = HiggsTokenizer(synthetic_tokenizer(special_ids(config.backbone.vocabulary_size)))
    size = Size(streams, POSITIONS)
    voice = assemble(
        config, parameters, codec, tokenizer, size=size, device=device, is_native=is_native
    )
    return replace(voice, member=replace(V3, row_limit=ROWS))


async def speak(stage: Stage, said: str, number: int) -> Played:
    began_s = time.perf_counter()
    stream = stage.open(SpeakRequest(f"reply-{number:06d}", VOICE))
    await stream.push(said)
    await stream.finish()
    first_s, stall_s, audio_s, pieces = 0.0, 0.0, 0.0, 0
    async for delta in stream:
        now_s = time.perf_counter() - began_s
        if not len(delta.samples):
            continue
        if pieces == 0:
            first_s = now_s
        stall_s = max(stall_s, now_s - first_s - audio_s)
        audio_s += len(delta.samples) / CODEC_RATE_HZ
        pieces += 1
    took_s = time.perf_counter() - began_s
    return Played(audio_s, took_s, first_s * 1000, stall_s * 1000, pieces)


async def load(stage: Stage, streams: int, replies: int, chance: random.Random) -> Load:
    room = asyncio.Semaphore(streams)

    async def one(number: int) -> Played:
        async with room:
            return await speak(stage, text(chance), number)

    began_s = time.perf_counter()
    played = await asyncio.gather(*(one(number) for number in range(replies)))
    took_s = time.perf_counter() - began_s
    firsts = [reply.first_ms for reply in played]
    return Load(
        streams=streams,
        replies=replies,
        audio_s_per_s=sum(reply.audio_s for reply in played) / took_s,
        real_time_factor=statistics.median(reply.took_s / reply.audio_s for reply in played),
        first_ms=statistics.median(firsts),
        first_p95_ms=percentile(firsts, 95),
        longest_stall_ms=max(reply.stall_ms for reply in played),
        pieces=statistics.median(reply.pieces for reply in played),
    )


async def aborts(stage: Stage, chance: random.Random) -> tuple[list[float], float]:
    """Milliseconds from an abort to the free slot; and the longest gap in sound of the others."""
    taken_ms: list[float] = []
    gaps: list[float] = []

    async def listen(number: int) -> None:
        last_s = time.perf_counter()
        stream = stage.open(SpeakRequest(f"beside-{number:05d}", VOICE))
        await stream.push(text(chance))
        await stream.finish()
        async for _ in stream:
            now_s = time.perf_counter()
            gaps.append((now_s - last_s) * 1000)
            last_s = now_s

    async with asyncio.TaskGroup() as tasks:
        for number in range(BESIDE):
            tasks.create_task(listen(number))
        for number in range(ABORTS):
            stream = stage.open(SpeakRequest(f"aborted-{number:04d}", VOICE))
            await stream.push(text(chance))
            await asyncio.sleep(chance.uniform(0.01, 0.03))
            before = stage.active
            stream.abort()
            began_s = time.perf_counter()
            while stage.active >= before:
                await asyncio.sleep(0)
            taken_ms.append((time.perf_counter() - began_s) * 1000)
    return taken_ms, max(gaps)


def extensions(voice: HiggsVoice, chance: random.Random) -> list[float]:
    """Milliseconds from a further text to the first row that it draws, beside others."""
    engine = voice.engine
    preamble = voice.preamble()
    short = replace(voice, member=replace(V3, row_limit=70))
    for slot in range(1, BESIDE + 1):
        replace(voice, member=replace(V3, row_limit=1500)).open(
            slot, preamble, sampling=V3.sampling, seed=slot
        )
        engine.feed(slot, text(chance))
    sequence = short.open(0, preamble, sampling=V3.sampling, seed=0).sequence
    active = list(range(BESIDE + 1))
    taken_ms: list[float] = []
    for _ in range(EXTENSIONS + 1):
        drawn = sequence.rows_drawn
        began_s = time.perf_counter()
        engine.feed(0, text(chance))
        while sequence.rows_drawn == drawn:
            engine.step(active)
        taken_ms.append((time.perf_counter() - began_s) * 1000)
        while not sequence.awaits_text:
            engine.step(active)
        engine.step(active)
    for slot in active:
        engine.close(slot)
    return taken_ms[1:]


def step_times(voice: HiggsVoice, streams: int, steps: int = 120) -> float:
    """Milliseconds a step when so many streams draw, the host's work and the codec's included."""
    engine = voice.engine
    for slot in range(streams):
        voice.open(slot, voice.preamble(), sampling=V3.sampling, seed=slot)
        engine.feed(slot, text(random.Random(slot)))
    active = list(range(streams))
    for _ in range(60):
        engine.step(active)
    began_s = time.perf_counter()
    for _ in range(steps):
        engine.step(active)
    took_ms = (time.perf_counter() - began_s) * 1000 / steps
    for slot in active:
        engine.close(slot)
    return took_ms


async def measure(voice: HiggsVoice, streams: Sequence[int], rounds: int) -> dict[str, object]:
    chance = random.Random(1)
    # Whoever measures speed reads as fast as sound is made: nobody is paused.
    lead = Lead(speech_seconds, limit_s=1e9, resume_s=1e8)
    model = HiggsModel(voice, {VOICE: voice.preamble()}, V3.sampling)
    stage: Stage = SteppedStage("tts", lambda progress: model, None, lead=lead, output_limit=1024)
    await stage.start(print)
    try:
        await load(stage, max(streams), max(streams), chance)
        loads: list[Load] = []
        for count in streams:
            loads.append(await load(stage, count, max(count, min(rounds * count, 128)), chance))
            print(f"{count}: {loads[-1]}", flush=True)
        aborted_ms, gap_ms = await aborts(stage, chance)
    finally:
        await stage.close()
    print_table(
        ["streams", "audio s/s", "RTF", "first ms", "p95", "stall ms", "pieces"],
        [
            [
                row.streams,
                f"{row.audio_s_per_s:.1f}",
                f"{row.real_time_factor:.3f}",
                f"{row.first_ms:.0f}",
                f"{row.first_p95_ms:.0f}",
                f"{row.longest_stall_ms:.0f}",
                f"{row.pieces:.0f}",
            ]
            for row in loads
        ],
    )
    return {
        "loads": [asdict(row) for row in loads],
        "aborts_ms": aborted_ms,
        "gap_beside_aborts_ms": gap_ms,
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--device", default="cuda:0")
    options.add_argument("--streams", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    options.add_argument("--rounds", type=int, default=3, help="replies for each stream")
    options.add_argument("--tiny", action="store_true", help="a model that runs anywhere")
    options.add_argument("--library", action="store_true", help="without the project's kernels")
    given = options.parse_args()
    began_s = time.perf_counter()
    voice = make_voice(given.device, WIDEST, given.tiny, not given.library)
    warm_up(voice, [voice.preamble()])
    print(f"ready after {time.perf_counter() - began_s:.0f} s", flush=True)
    steps = {count: step_times(voice, count) for count in given.streams}
    extended_ms = extensions(voice, random.Random(2))
    figures = asyncio.run(measure(voice, given.streams, given.rounds))
    figures |= {"step_ms": steps, "extensions_ms": extended_ms}
    print("step, host and codec included, ms:", {k: round(v, 2) for k, v in steps.items()})
    print("text to first row beside 15, ms:", _spread(extended_ms))
    print("abort to free slot beside 15, ms:", _spread(list(figures["aborts_ms"])))  # type: ignore[call-overload]
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


def _spread(values: list[float]) -> str:
    return f"median {statistics.median(values):.1f}, worst {max(values):.1f}, n {len(values)}"


if __name__ == "__main__":
    main()
