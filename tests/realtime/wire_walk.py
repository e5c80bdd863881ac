"""A client that may do anything next, against a whole session over scripted stages.

Every event that it gets is read strictly and goes through `WireOrder`; every event that it sends
has one answer. Time is virtual, and `dice` decides everything.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from pipelines.courtesy import Courtesy
from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.hearing import FakeJudge, FakeRecogniser
from pipelines.fakes.speaker import FakeSpeaker
from pipelines.fakes.virtual_time import run_virtual
from pipelines.fakes.writer import Call, End, Fail, FakeWriter, Say, Script, Stall, Step
from pipelines.reply import ReplyTiming
from pipelines.types import FinishReason, RecogniseRequest, Samples, StageError, WriteRequest
from realtime.observe.metrics import Count, Metrics
from realtime.runtime.session import SessionRuntime
from realtime.runtime.shell import SessionSetup
from realtime.session import notices as n
from realtime.session.notices import Notice
from realtime.session.settings import SessionSettings, Transcription
from tests.realtime.runtime.stand_ins import PipeTransport, append, pcm, silence, tone
from tests.realtime.session.choices import DETECTIONS
from tests.realtime.session.wire_order import WireOrder
from tests.realtime.wire_nonsense import garbage, half_valid
from tests.realtime.wire_reading import AudioDelta, read_event

CHUNK_MS = 100
PCM_BYTES_PER_MS = 48
ABORT_TURNS = 50  # of the loop, in no time: an abort goes through a reply's tasks one by one
SETTLED_S = 400.0  # longer than every deadline of a session together
# What answers an event, if no error does, and nothing else.
ANSWERS = {
    "session.update": "session.updated",
    "input_audio_buffer.clear": "input_audio_buffer.cleared",
    "conversation.item.retrieve": "conversation.item.retrieved",
    "conversation.item.truncate": "conversation.item.truncated",
    "conversation.item.delete": "conversation.item.deleted",
}


class WatchedTransport(PipeTransport):
    """Judges each event as it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.order = WireOrder()
        self.event_ids: set[str] = set()
        self.audio_bytes: Counter[str] = Counter()  # of the assistant's items
        self.errors: list[n.ErrorRaised] = []
        self.faults: list[BaseException] = []

    async def send(self, text: str) -> None:
        await super().send(text)
        try:
            event = self.sent[-1]
            assert event["event_id"] not in self.event_ids
            self.event_ids.add(event["event_id"])
            self._take(read_event(event))
        except Exception as fault:  # the session would take it for a lost connection
            self.faults.append(fault)

    def _take(self, read: Notice | AudioDelta) -> None:
        match read:
            case AudioDelta(at, audio):
                self.order.take_audio(at.response_id, at.item_id, at.output_index)
                assert audio and len(audio) % 2 == 0
                self.audio_bytes[at.item_id] += len(audio)
            case n.ItemTruncated(item_id, _, audio_end_ms):
                self.order.take(read)
                assert audio_end_ms <= self.audio_bytes[item_id] / PCM_BYTES_PER_MS + 1
            case n.ErrorRaised():
                self.errors.append(read)
            case _:
                self.order.take(read)


class WireWalk:
    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.replies = 0
        self.sent: dict[str, str] = {}  # kinds of events by the ids that we gave them
        self.garbage = 0  # how much of what we sent had no id
        self.transport = WatchedTransport()
        self.cascade = FakeCascade(
            writer=FakeWriter(self._script),
            recogniser=FakeRecogniser(self._text, delay_ms=dice.choice((0, 80, 900))),
            judge=FakeJudge([dice.choice((0.1, 0.6, 0.98)) for _ in range(50)]),
            speaker=FakeSpeaker(
                ms_per_word=dice.choice((90.0, 300.0)),
                real_time_factor=dice.choice((0.0, 0.3)),
                fail_after_words=dice.choice((None, None, None, 2.5)),
            ),
            timing=ReplyTiming(courtesy=Courtesy(2000, ("One moment.",), "Sorry.", "Nothing.")),
        )
        self.actions: dict[Callable[[], Any], int] = {
            self.speech: 8,
            self.silence: 10,
            self.time: 4,
            self.update: 4,
            self.item: 4,
            self.tool_output: 3,
            self.old_item: 8,
            self.respond: 6,
            self.cancel: 3,
            self.report: 2,
            self.buffer: 4,
            self.half_valid: 6,
            self.garbage_frame: 6,
        }

    # ---- the stages ----------------------------------------------------------------------------

    def _script(self, request: WriteRequest) -> Script:
        dice = self.dice
        self.replies += 1
        words = [f" r{self.replies}w{k}" for k in range(dice.choice((1, 4, 15)))]
        said: list[Step] = [Say(word, dice.choice((0, 0, 20, 300))) for word in words]
        call = Call("look", '{"a": 1}', f"call_{dice.randint(0, 3)}")
        broken = Fail(StageError("llm_failed", "It failed."))
        endings: list[list[Step]] = [
            [], [], [], [], [call], [call, Call("see", "{}", "", 1)], [broken], [Stall()],
            [End(FinishReason.LENGTH)], [End(FinishReason.CONTENT_FILTER)],
        ]  # fmt: skip
        return [*(said if dice.random() < 0.9 else []), *dice.choice(endings)]

    def _text(self, request: RecogniseRequest, samples: int) -> str:
        if self.dice.random() < 0.1:
            raise StageError("asr_failed", "It failed.")
        return self.dice.choice(("", "So it is.", "Yeah.", "No, wait a moment"))

    # ---- the user ------------------------------------------------------------------------------

    async def _play(self, audio: Samples) -> None:
        step = 24 * CHUNK_MS
        for at in range(0, len(audio), step):
            self.transport.client_sends(append(pcm(audio[at : at + step])))
            await asyncio.sleep(CHUNK_MS / 1000)

    async def speech(self) -> None:
        await self._play(tone(self.dice.choice((40, 150, 400, 900))))

    async def silence(self) -> None:
        await self._play(silence(self.dice.choice((100, 500, 1200))))

    async def time(self) -> None:
        """Nothing is sent, as by a muted microphone."""
        await asyncio.sleep(self.dice.choice((0.01, 0.3, 2.5, 8)))

    # ---- the client ----------------------------------------------------------------------------

    def send(self, kind: str, **fields: Any) -> None:
        event_id = f"mine_{len(self.sent)}"
        self.sent[event_id] = kind
        self.transport.client_sends({"type": kind, "event_id": event_id, **fields})

    def known_item(self) -> str:
        return self.dice.choice((*self.transport.order.order[-4:], "item_nowhere"))

    def update(self) -> None:
        detection = self.dice.choice(DETECTION_VIEWS)
        session: dict[str, Any] = self.dice.choice(
            (
                {"instructions": self.dice.choice(("Be brief.", ""))},
                {"audio": {"input": {"turn_detection": detection}}},
                {"audio": {"input": {"transcription": self.dice.choice((None, {}))}}},
                {"audio": {"output": {"voice": "other", "speed": 1.2}}},
                {"output_modalities": [self.dice.choice(("audio", "text"))]},
            )
        )
        self.send("session.update", session={"type": "realtime", **session})

    def item(self) -> None:
        dice = self.dice
        audio = base64.b64encode(pcm(tone(300))).decode()
        parts: list[dict[str, Any]] = [
            {"type": "input_text", "text": "typed"},
            {"type": "input_audio", "audio": audio},
            {"type": "input_audio", "transcript": "said"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        ]
        item: dict[str, Any] = {"type": "message", "role": "user"}
        item["content"] = dice.sample(parts, dice.randint(0, 3))
        if dice.random() < 0.3:
            item["id"] = f"own_{dice.randint(0, 6)}"
        previous = dice.choice((None, "", "root", self.known_item()))
        self.send("conversation.item.create", item=item, previous_item_id=previous)

    def tool_output(self) -> None:
        called = [
            event["item"]["call_id"]
            for event in self.transport.of("conversation.item.done")
            if event["item"]["type"] == "function_call"
        ]
        call_id = self.dice.choice([*called[-2:], "call_nowhere"])
        item = {"type": "function_call_output", "call_id": call_id, "output": "1"}
        self.send("conversation.item.create", item=item)

    def old_item(self) -> None:
        item_id = self.known_item()
        match self.dice.randint(0, 3):
            case 0:
                self.send("conversation.item.delete", item_id=item_id)
            case 1:
                self.send("conversation.item.retrieve", item_id=item_id)
            case _:
                played_ms = self.transport.audio_bytes[item_id] / PCM_BYTES_PER_MS
                end_ms = self.dice.choice((0, 100, int(np.ceil(played_ms)), 90_000))
                where = {"item_id": item_id, "content_index": 0}
                self.send("conversation.item.truncate", **where, audio_end_ms=end_ms)

    def respond(self) -> None:
        response: dict[str, Any] | None = self.dice.choice(
            (
                None,
                {},
                {"output_modalities": ["text"]},
                {"conversation": "none", "metadata": {"topic": "side"}},
                {"conversation": "none", "input": [], "instructions": "Say hello."},
                {"input": [{"type": "item_reference", "id": self.known_item()}]},
                {"max_output_tokens": 5, "tool_choice": "none"},
            )
        )
        self.send("response.create", response=response)

    def cancel(self) -> None:
        wanted = self.dice.choice((None, "resp_nowhere", *self.transport.order.running))
        self.send("response.cancel", response_id=wanted)

    def report(self) -> None:
        played_ms = self.dice.choice((0, 250, 90_000))
        self.send("parley.playback", item_id=self.known_item(), played_ms=played_ms)

    def buffer(self) -> None:
        self.send(f"input_audio_buffer.{self.dice.choice(('commit', 'clear'))}")

    def half_valid(self) -> None:
        kind, fields = half_valid(self.dice)
        self.send(kind, **fields)

    def garbage_frame(self) -> None:
        self.garbage += 1
        self.transport.client_sends(garbage(self.dice))

    # ---- the whole -----------------------------------------------------------------------------

    def run(self, names: list[str], settles: bool) -> None:
        """Do what is named, then settle or leave at once; nothing of the session is left."""
        run_virtual(self._run(names, settles), limit_s=7200)

    def some_names(self, steps: int) -> list[str]:
        actions, weights = list(self.actions), list(self.actions.values())
        return [a.__name__ for a in self.dice.choices(actions, weights, k=steps)]

    async def _run(self, names: list[str], settles: bool) -> None:
        await self.cascade.start(lambda line: None)
        before, metrics = asyncio.all_tasks(), Metrics()
        settings = SessionSettings(
            turn_detection=self.dice.choice(DETECTIONS), transcription=Transcription()
        )
        lead_ms = self.dice.choice((None, 200.0))
        setup = SessionSetup(settings, seed=7, drafts=self.dice.random() < 0.5, lead_ms=lead_ms)
        session = SessionRuntime(self.transport, self.cascade, setup, metrics=metrics)
        running = asyncio.create_task(session.run())
        for name in names:
            doing = getattr(self, name)()
            if doing is not None:
                await doing
            elif self.dice.random() < 0.3:
                await asyncio.sleep(0.02)
            assert not running.done(), self.transport.closed
        if settles:
            await self._play(silence(9000))
            await asyncio.sleep(SETTLED_S)
            self._check_settled()
        self.transport.client_leaves()
        await running
        self._check_faults()
        for _ in range(ABORT_TURNS):
            await asyncio.sleep(0)
        assert session.open_requests == 0 and self.cascade.active == 0
        assert self.cascade.detector.active == 0
        assert asyncio.all_tasks() == before
        assert (
            not metrics.counts[Count.SESSIONS_CRASHED] and not metrics.counts[Count.CLIENTS_STALLED]
        )
        await self.cascade.close()

    def _check_faults(self) -> None:
        if self.transport.faults:
            raise self.transport.faults[0]

    def _check_settled(self) -> None:
        """Everything has had its answer, and nothing is under way."""
        self._check_faults()
        order, errors = self.transport.order, self.transport.errors
        assert not order.running, "a response never ended"
        assert not order.undone, "an item was never done"
        named = Counter(error.client_event_id for error in errors if error.client_event_id)
        assert set(named) <= set(self.sent) and set(named.values()) <= {1}
        refused = Counter(self.sent[event_id] for event_id in named)
        asked, told = Counter(self.sent.values()), Counter(self.transport.types())
        for kind, answer in ANSWERS.items():
            assert told[answer] + refused[kind] == asked[kind], kind
        nameless = [e for e in errors if e.type != "server_error" and not e.client_event_id]
        assert len(nameless) == self.garbage


def _view(detection: Any) -> dict[str, Any] | None:
    if detection is None:
        return None
    fields = {name: getattr(detection, name) for name in detection.__dataclass_fields__}
    return {"type": "server_vad" if "threshold" in fields else "semantic_vad", **fields}


DETECTION_VIEWS = [json.loads(json.dumps(_view(detection))) for detection in DETECTIONS]
