"""The whole voice on a GPU, under load: `python -m benchmarks.higgs.stage`.

Random weights of the published size, 243 frames (9.72 s of sound) a reply, distinct texts of twenty
words, no reference. For each number of replies at once: seconds of sound made per second; then
streamed, how long until the first sound, and the longest stall of a listener who plays from then
on; then what it takes to abort one of sixteen, what the others notice, and how long it is from a
further text to its first row.
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


@dataclass(frozen=True, slots=True)
class Beside:
    """What replies that are not aborted notice, each heard from its first piece on."""

    stall_ms: float  # the longest
    audio_s_per_s: float


async def beside(
    stage: Stage, chance: random.Random, abort_count: int
) -> tuple[Beside, list[float]]:
    """Replies heard out while others come and are aborted; and how long each abort took, in ms,
    from the call until its slot was free."""
    taken_ms: list[float] = []
    began_s = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        heard = [tasks.create_task(speak(stage, text(chance), n)) for n in range(BESIDE)]
        for number in range(abort_count):
            stream = stage.open(SpeakRequest(f"aborted-{number:04d}", VOICE))
            await stream.push(text(chance))
            await asyncio.sleep(chance.uniform(0.01, 0.03))
            count = stage.abort_latency.count
            stream.abort()
            while stage.abort_latency.count == count:
                await asyncio.sleep(0.001)
            taken_ms.append(stage.abort_latency.last_ms)
    took_s = time.perf_counter() - began_s
    played = [task.result() for task in heard]
    rate = sum(reply.audio_s for reply in played) / took_s
    return Beside(max(reply.stall_ms for reply in played), rate), taken_ms


def extensions(voice: HiggsVoice, chance: random.Random) -> list[float]:
    """Milliseconds from a further text to the first row that it draws, beside streams that draw."""
    engine = voice.engine
    short = replace(voice, member=replace(V3, row_limit=70))
    active = list(range(BESIDE + 1))

    def begin(slot: int) -> None:
        chosen = voice if slot else short
        chosen.open(slot, voice.preamble(), sampling=V3.sampling, seed=chance.getrandbits(31))
        engine.feed(slot, text(chance))

    def step() -> None:
        for slot, outcome in engine.step(active).items():
            if outcome.error is not None:
                engine.close(slot)
                begin(slot)
        for slot in active[1:]:
            if engine.stream(slot).sequence.awaits_text:
                engine.feed(slot, text(chance))

    for slot in active:
        begin(slot)
    taken_ms: list[float] = []
    while len(taken_ms) < EXTENSIONS:
        while not engine.stream(0).sequence.awaits_text:
            step()
        step()
        drawn = engine.stream(0).sequence.rows_drawn
        began_s = time.perf_counter()
        engine.feed(0, text(chance))
        while engine.stream(0).sequence.rows_drawn == drawn:
            step()
        taken_ms.append((time.perf_counter() - began_s) * 1000)
    for slot in active:
        engine.close(slot)
    return taken_ms


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


def make_stage(voice: HiggsVoice) -> Stage:
    # Whoever measures speed reads as fast as sound is made: nobody is paused.
    lead = Lead(speech_seconds, limit_s=1e9, resume_s=1e8, most_s=1e9)
    model = HiggsModel(voice, {VOICE: voice.preamble()}, V3.sampling)
    return SteppedStage("tts", lambda progress: model, None, lead=lead, output_limit=1024)


async def measure(voice: HiggsVoice, streams: Sequence[int], rounds: int) -> dict[str, object]:
    chance = random.Random(1)
    stage = make_stage(voice)
    await stage.start(print)
    try:
        await load(stage, max(streams), max(streams), chance)
        loads: list[Load] = []
        for count in streams:
            loads.append(await load(stage, count, max(count, min(rounds * count, 128)), chance))
            print(f"{count}: {loads[-1]}", flush=True)
        undisturbed, _ = await beside(stage, chance, 0)
        disturbed, aborted_ms = await beside(stage, chance, ABORTS)
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
    print("abort to free slot beside 15, ms:", _spread(aborted_ms))
    print(f"15 replies undisturbed: {undisturbed}; beside {ABORTS} aborts: {disturbed}")
    return {
        "loads": [asdict(row) for row in loads],
        "aborts_ms": aborted_ms,
        "undisturbed": asdict(undisturbed),
        "beside_aborts": asdict(disturbed),
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
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


def _spread(values: list[float]) -> str:
    return f"median {statistics.median(values):.1f}, worst {max(values):.1f}, n {len(values)}"


if __name__ == "__main__":
    main()
