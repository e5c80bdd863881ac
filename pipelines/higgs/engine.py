"""Continuous batching: many replies on one decoder and one codec, one step after the other.

    step n:   rows of every stream ->  launch n   (the device works)
                                       collect n-1 -> codes -> frames -> codec -> samples

A step is launched before the codes of the last one are read, so that the device never waits for
the host. All that a stream is, beside tensors, is in `SpeechStream`.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pipelines.higgs.ports import INVALID_CODE, Codec, CodecJob, Decoder, Sound
from pipelines.higgs.prefixes import PrefixStore
from pipelines.higgs.reply.stream import SpeechStream
from pipelines.higgs.rows import NO_DRAW, Row, RowBatch
from pipelines.types import SpeechDelta, StageError

logger = logging.getLogger(__name__)

LEAST_PROMPT_ROWS = 32  # however many streams draw: whoever waits for a first sound must begin


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step made for one slot.

    is_starved: nothing to do before more text, or before `again_s` seconds have passed.
    """

    outputs: tuple[SpeechDelta, ...] = ()
    is_starved: bool = False
    is_ended: bool = False
    again_s: float | None = None
    error: StageError | None = None


@dataclass(frozen=True, slots=True)
class _Launched:
    """A row that draws, on its way: whose it is."""

    index: int  # in its step's batch
    stream: SpeechStream
    generation: int


class HiggsEngine:
    """A fixed number of slots; one thread. Slots of the decoder beyond `streams` keep prefixes."""

    def __init__(
        self,
        decoder: Decoder,
        codec: Codec,
        *,
        streams: int,
        codebooks: int,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        if streams > min(decoder.slots, codec.slots):
            raise ValueError(
                f"{streams} streams need as many slots: the decoder has {decoder.slots}, the codec "
                f"{codec.slots}"
            )
        self._decoder = decoder
        self._codec = codec
        self._codebooks = codebooks
        self._now_s = now_s
        self._slots = streams
        self._streams: dict[int, SpeechStream] = {}
        self._prefixes = PrefixStore(decoder, range(streams, decoder.slots))
        self._steps: deque[list[_Launched]] = deque()
        self._sounds: deque[tuple[Sound, list[SpeechStream]]] = deque()

    @property
    def slots(self) -> int:
        return self._slots

    def stream(self, slot: int) -> SpeechStream:
        """The reply that is open in a slot. Raises KeyError if there is none."""
        return self._streams[slot]

    def open(self, slot: int, stream: SpeechStream) -> None:
        """Begin a reply in a free slot."""
        self._streams[slot] = stream
        self._codec.reset(slot)
        rows = stream.sequence.preamble_to_feed
        if rows and self._prefixes.restore(stream.preamble_key, rows, slot):
            stream.sequence.skip_preamble()
            stream.is_preamble_kept = True

    def feed(self, slot: int, text: str | None) -> None:
        """More text; None: no more comes. Raises StageError where it cannot be spoken."""
        stream = self._streams[slot]
        if text is None:
            stream.finish()
        else:
            stream.push(text)

    def close(self, slot: int) -> None:
        """Free the slot: what is on its way for it is dropped when it arrives."""
        stream = self._streams.pop(slot, None)
        if stream is not None:
            stream.close()

    def step(self, active: Sequence[int]) -> Mapping[int, Outcome]:
        """Advance these slots, the most urgent first. Other slots may have outcomes too: sound
        comes late."""
        streams = [self._streams[slot] for slot in active]
        self._collect(1)  # more only if the last step broke off
        launched = self._launch(streams)
        self._collect(1 if launched else 0)
        now_s = self._now_s()
        submitted = self._submit(streams, now_s)
        heard = self._hear(may_wait=not launched and not submitted and not self._steps)
        for stream in streams:
            heard.setdefault(stream, [])
        return {
            stream.slot: self._outcome(stream, outputs, now_s) for stream, outputs in heard.items()
        }

    def close_devices(self) -> None:
        self._decoder.close()
        self._codec.close()

    # ---- the decoder -------------------------------------------------------------------------

    def _launch(self, streams: list[SpeechStream]) -> bool:
        """One row for every stream that draws, then prompts in what room is left.

        A full step takes a fraction of a frame's time, so nobody runs dry beside prompts, and
        whoever begins is heard soonest.
        """
        limit = self._decoder.row_limit
        rows: list[Row] = []
        owners: list[SpeechStream] = []
        most = limit - LEAST_PROMPT_ROWS if any(stream.feeds for stream in streams) else limit
        for stream in streams:
            if stream.draws and len(rows) < most:
                taken = stream.sequence.take(1)
                rows += taken
                owners += [stream] * len(taken)
        room = limit - len(rows)
        for stream in streams:
            if room < 1:
                break
            if stream.feeds:
                taken = stream.sequence.take(room)
                rows += taken
                owners += [stream] * len(taken)
                room -= len(taken)
        if not rows:
            return False
        self._decoder.launch(RowBatch.of(rows, self._codebooks))
        self._steps.append(
            [
                _Launched(index, stream, stream.sequence.generation)
                for index, (row, stream) in enumerate(zip(rows, owners, strict=True))
                if row.ramp != NO_DRAW
            ]
        )
        for stream in dict.fromkeys(owners):
            self._keep_preamble(stream)
        return True

    def _keep_preamble(self, stream: SpeechStream) -> None:
        if stream.is_preamble_kept or not stream.sequence.has_fed_preamble:
            return
        stream.is_preamble_kept = True
        self._prefixes.keep(stream.preamble_key, stream.preamble_rows, stream.slot)

    def _collect(self, lookahead: int) -> None:
        """Read the codes of all steps but the last `lookahead`."""
        while len(self._steps) > lookahead:
            step = self._steps.popleft()
            codes = self._decoder.collect()
            assert codes is not None
            drawn = codes.tolist()
            for launched in step:
                row = tuple(drawn[launched.index])
                with _alone(launched.stream):
                    if row[0] == INVALID_CODE:
                        raise _not_finite()
                    launched.stream.accept(row, launched.generation)

    # ---- the codec ---------------------------------------------------------------------------

    def _submit(self, streams: list[SpeechStream], now_s: float) -> bool:
        jobs: list[CodecJob] = []
        owners: list[SpeechStream] = []
        for stream in streams:
            with _alone(stream):
                job = stream.due(now_s)
                if job is not None:
                    jobs.append(job)
                    owners.append(stream)
        if not jobs:
            return False
        self._sounds.append((self._codec.submit(jobs), owners))
        for job in jobs:
            if job.ends:
                self._codec.reset(job.slot)
        return True

    def _hear(self, may_wait: bool) -> dict[SpeechStream, list[SpeechDelta]]:
        """Samples that have arrived; `may_wait`: there is nothing else to do meanwhile."""
        heard: dict[SpeechStream, list[SpeechDelta]] = {}
        while self._sounds and (may_wait or self._sounds[0][0].is_ready):
            may_wait = False
            sound, owners = self._sounds.popleft()
            now_s = self._now_s()
            for stream, samples in zip(owners, sound.take(), strict=True):
                if not stream.is_closed:
                    with _alone(stream):
                        heard.setdefault(stream, []).extend(stream.hear(samples, now_s))
        return heard

    def _outcome(self, stream: SpeechStream, outputs: list[SpeechDelta], now_s: float) -> Outcome:
        return Outcome(
            outputs=(*outputs, *stream.rest()),
            is_starved=stream.is_starved,
            is_ended=stream.is_ended,
            again_s=stream.again_s(now_s) if stream.is_starved else None,
            error=stream.error,
        )


@contextmanager
def _alone(stream: SpeechStream) -> Iterator[None]:
    """What goes wrong for one stream fails that one, whoever shares its step."""
    try:
        yield
    except StageError as error:
        stream.fail(error)
    except Exception as error:
        logger.exception("the voice failed in slot %d", stream.slot)
        cause = f"{type(error).__name__}: {error}"
        stream.fail(StageError("tts_failed", f"The voice failed on one reply: {cause}."))


def _not_finite() -> StageError:
    return StageError(
        "tts_failed",
        "The voice's model computed something that is not a number: its weights are damaged or do "
        "not fit its precision; check the checkpoint.",
    )
