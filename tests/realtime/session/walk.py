"""A session in which anything may happen next: the material of the property tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from realtime.session import effects as fx
from realtime.session import events as ev
from realtime.session.effects import Effect
from realtime.session.events import Event
from realtime.session.items import Item, ItemKind, ItemReference, Part, PartKind, Role
from realtime.session.notices import ErrorRaised, ResponseDone
from realtime.session.playback import CARRIED_MS
from realtime.session.settings import Modality
from realtime.session.states import Lifecycle
from tests.realtime.session.choices import DETECTIONS, NONSENSE, NONSENSE_ID
from tests.realtime.session.script import RATE_HZ, Script
from tests.realtime.session.soundness import check, check_settled


@dataclass(slots=True)
class _Written:
    """What the stages made of one reply. marks: (samples, characters spoken at their end)."""

    number: int
    text: str = ""
    words: int = 0
    samples: int = 0
    marks: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


class Walk(Script):
    """`dice` decides everything. Every word of every reply is unique, so that it can be traced."""

    def __init__(self, dice: Random) -> None:
        detection = dice.choice(DETECTIONS)
        super().__init__(
            detection,
            hears=None,
            judges=None,
            drafts=dice.random() < 0.7,
            lead_ms=200 if dice.random() < 0.6 else None,
        )
        self.dice = dice
        self.after_step = lambda: check(self)
        self.written: dict[str, _Written] = {}
        self.spoken_in: dict[str, str] = {}  # request by item
        self.reported_ms: dict[str, int] = {}
        self.truncated_ms: dict[str, int] = {}
        self.dead: list[str] = []  # aborted requests
        self.actions: dict[Callable[[], None], int] = {
            self.some_speech: 10,
            self.some_silence: 12,
            self.some_flicker: 3,
            self.some_time: 6,
            self.transcript: 12,
            self.some_words: 6,
            self.judgement: 5,
            self.reply_text: 8,
            self.reply_audio: 12,
            self.reply_call: 3,
            self.reply_end: 8,
            self.whole_reply: 6,
            self.late_result: 3,
            self.manual_buffer: 3,
            self.new_item: 3,
            self.tool_output: 2,
            self.new_response: 5,
            self.some_cancel: 2,
            self.old_item: 5,
            self.new_settings: 4,
            self.socket: 1,
            self.nonsense: 1,
        }

    def go(self, steps: int) -> None:
        actions, weights = list(self.actions), list(self.actions.values())
        for _ in range(steps):
            if self.machine.lifecycle is Lifecycle.CLOSED:
                return
            self.dice.choices(actions, weights)[0]()

    def settle(self) -> None:
        """The user falls silent. The stages answer, or are all dead: either way all ends."""
        if self.dice.random() < 0.5:
            for _ in range(60):
                self.transcript()
                self.judgement()
                if self.live(fx.StartReply):
                    self.finish()
                self.silence(320)
        self.silence(9000)
        self.wait(400_000)
        check_settled(self)
        if self.machine.lifecycle is not Lifecycle.CLOSED:
            self.step(ev.Disconnected())
        assert self.machine.lifecycle is Lifecycle.CLOSED

    # ---- what may be heard of a reply ----------------------------------------------------------

    def _perform(self, effect: Effect) -> None:
        match effect:
            case fx.StartReply():
                self.written[effect.request] = _Written(len(self.written))
                if self._is_of_conversation(effect):
                    self._check_prompt(effect)
            case fx.PlayReply():
                self.spoken_in[effect.item_id] = effect.request
            case fx.Abort(request):
                self.dead.append(request)
            case _:
                pass
        super()._perform(effect)

    def _is_of_conversation(self, effect: fx.StartReply) -> bool:
        return not effect.messages or effect.messages[0].text != "replaced"

    def _check_prompt(self, effect: fx.StartReply) -> None:
        """Of each spoken item a beginning, not longer than what was heard, in order of start."""
        said = [m.text for m in effect.messages if m.role == "assistant" and m.text]
        words = " ".join(said).split()
        for item in self.machine.ctx.conversation:
            written = self._writing_of(item)
            if written is None:
                continue
            mine = 0
            while words and words[0].startswith(f"r{written.number}w"):
                assert words.pop(0) == f"r{written.number}w{mine}", "words are out of order"
                mine += 1
            heard = " ".join(f"r{written.number}w{k}" for k in range(mine))
            assert len(heard) <= self._most_heard(item.id, written), f"{heard!r} was not all heard"
        rest = [word for word in words if not word.startswith("text")]
        assert not rest, f"{rest} belongs to no item, or is out of order"
        for call, answer in zip(effect.messages, effect.messages[1:], strict=False):
            if call.calls:
                assert answer.role == "tool" and answer.call_id == call.calls[0].call_id

    def _writing_of(self, item: Item) -> _Written | None:
        if item.id in self.spoken_in:
            return self.written[self.spoken_in[item.id]]
        text = item.parts[0].text or "" if item.parts else ""
        number = text.partition("w")[0].removeprefix("r")
        return list(self.written.values())[int(number)] if number.isdigit() else None

    def _most_heard(self, item_id: str, written: _Written) -> int:
        reply = self.egress.heard.get(item_id)
        if reply is None:
            return len(written.text)  # it had no sound at all
        if item_id in self.truncated_ms:
            heard = self.truncated_ms[item_id] * RATE_HZ / 1000
        else:
            # A report is carried on for a while: the listener hears on.
            known_ms = self.reported_ms.get(item_id, -CARRIED_MS) + CARRIED_MS
            heard = max(reply.heard_samples(self.now_ms), known_ms * RATE_HZ / 1000)
        if heard + RATE_HZ / 1000 >= reply.sent:
            heard = reply.sent
            if item_id not in {o.item_id for r in self.wire.running.values() for o in r.outputs}:
                return len(written.text)
        for samples, characters in written.marks:
            if samples >= heard > 0:
                return characters
        return written.marks[-1][1] if written.marks and heard > 0 else 0

    # ---- the user ------------------------------------------------------------------------------

    def some_speech(self) -> None:
        self.say(32 * self.dice.choice((1, 2, 3, 5, 8, 20)))

    def some_silence(self) -> None:
        self.silence(32 * self.dice.choice((1, 2, 3, 6, 12, 25, 60)))

    def some_flicker(self) -> None:
        for _ in range(self.dice.randint(2, 12)):
            self.frame(self.dice.choice((0.01, 0.4, 0.6, 0.95)))

    def some_time(self) -> None:
        """Time without audio, as from a muted microphone."""
        self.wait(self.dice.choice((5, 50, 300, 1100, 2500, 6000)))
        if self.dice.random() < 0.03:
            self.wait(50_000)

    # ---- the stages ----------------------------------------------------------------------------

    def transcript(self) -> None:
        asked = [w for w in self.works.values() if isinstance(w, fx.Recognise | fx.RecogniseHandle)]
        if not asked:
            return
        request = self.dice.choice(asked).request
        del self.works[request]
        if self.dice.random() < 0.1:
            self.step(ev.TranscriptFailed(request, "asr_failed", "It failed."))
        else:
            self.step(ev.TranscriptFinal(request, self.dice.choice(("", " ", "So it is", "Yeah."))))

    def some_words(self) -> None:
        if self.live(fx.Listen):
            self.glimpse(self.dice.choice(("Mm-hm.", "No, wait a moment", "So", "")))

    def judgement(self) -> None:
        asked = self.live(fx.AskJudge)
        if not asked:
            return
        del self.works[asked[0].request]
        if self.dice.random() < 0.1:
            self.step(ev.JudgeFailed(asked[0].request, "judge_failed", "It failed."))
        else:
            self.step(ev.JudgeAnswered(asked[0].request, self.dice.choice((0.0, 0.4, 0.6, 1.0))))

    def _some_reply(self) -> str | None:
        started = self.live(fx.StartReply)
        return self.dice.choice(started).request if started else None

    def reply_text(self) -> None:
        request = self._some_reply()
        if request is None:
            return
        written = self.written[request]
        for _ in range(self.dice.randint(1, 5)):
            word = f"r{written.number}w{written.words}"
            delta = f" {word}" if written.text else word
            written.words += 1
            written.text += delta
            self.write(delta, request)
            if request not in self.works:
                return

    def reply_audio(self) -> None:
        request = self._some_reply()
        if request not in self.egress.replies or not self.written[request].text:
            return
        written, ms = self.written[request], self.dice.choice((10, 40, 200, 700, 2500))
        words = self._word_ends(written, ms) if self.dice.random() < 0.5 else ()
        written.samples += ms * RATE_HZ // 1000
        written.marks += [*words, (written.samples, len(written.text))]
        self.speak(ms, len(written.text), request, words)

    def _word_ends(self, written: _Written, ms: int) -> tuple[tuple[int, int], ...]:
        """Somewhere in the next `ms` of audio, or a little beyond; and now and then a pause."""
        spoken = written.marks[-1][1] if written.marks else 0
        fresh = [found.end() for found in re.finditer(r"\S+", written.text) if found.end() > spoken]
        ends = sorted([*fresh, *(end for end in fresh if self.dice.random() < 0.2)])
        at = sorted(self.dice.randint(1, (ms + 20) * RATE_HZ // 1000) for _ in ends)
        return tuple((written.samples + a, end) for a, end in zip(at, ends, strict=True))

    def reply_call(self) -> None:
        if self.live(fx.StartReply):
            index = self.dice.randint(0, 1)
            self.call("look", '{"a": 1}', index, f"call_{self.dice.randint(0, 4)}")

    def reply_end(self) -> None:
        request = self._some_reply()
        if request is None:
            return
        if self.dice.random() < 0.2:
            self.fail(request)
            return
        reason = self.dice.choice(("stop", "stop", "length", "content_filter"))
        if self.dice.random() < 0.5:
            self.step(ev.ReplyWritten(request, reason))
        self.finish(reason, request)

    def whole_reply(self) -> None:
        """Some sentence, spoken and over."""
        self.reply_text()
        self.reply_audio()
        self.reply_end()

    def late_result(self) -> None:
        if not self.dead:
            return
        request = self.dice.choice(self.dead)
        late: tuple[Event, ...] = (
            ev.ReplyText(request, " late"),
            ev.ReplyAudio(request, 4800, 3),
            ev.ReplyToolCall(request, 0, "call_late", "look", "{}"),
            ev.ReplyWritten(request, "stop"),
            ev.ReplyFinished(request, "stop"),
            ev.ReplyFailed(request, "late", "Late."),
            ev.TranscriptFinal(request, "late"),
            ev.TranscriptPartial(request, "la"),
            ev.TranscriptFailed(request, "late", "Late."),
            ev.JudgeAnswered(request, 0.9),
            ev.JudgeFailed(request, "late", "Late."),
            ev.EgressDrained(request),
            ev.AudioLeaving(request, 100),
        )
        if request not in self.egress.replies:
            self.step(self.dice.choice(late))

    # ---- the client ----------------------------------------------------------------------------

    def manual_buffer(self) -> None:
        self.dice.choice((self.commit, self.clear))()

    def new_item(self) -> None:
        previous = self.dice.choice((None, "root", "nowhere", *self.item_ids[-3:]))
        item_id = self.dice.choice(("", "", f"mine_{self.dice.randint(0, 9)}", *self.item_ids[-1:]))
        turn = self.machine.listening.turn
        if turn is not None and self.dice.random() < 0.2:
            item_id = turn.item_id
        if self.dice.random() < 0.3:
            parts = [
                Part(PartKind.INPUT_AUDIO, audio_handle=f"audio_{place}", audio_ms=900)
                for place in range(2)
            ]
            item = Item(item_id, ItemKind.MESSAGE, role=Role.USER, parts=tuple(parts))
            self.step(ev.ClientItemCreate("e_item", item, previous))
        else:
            self.type("text of a user", item_id, previous)

    def tool_output(self) -> None:
        items = self.machine.ctx.conversation
        calls = [item.call_id for item in items if item.kind is ItemKind.FUNCTION_CALL]
        self.output(self.dice.choice(calls or ["call_unknown"]) or "")

    def new_response(self) -> None:
        way = self.dice.randint(0, 6)
        if way < 3:
            self.create()
        elif way == 3:
            self.create(modality=Modality.TEXT)
        elif way == 4:
            self.create(out_of_band=True, metadata=(("topic", "side"),))
        else:
            chosen = tuple(ItemReference(item_id) for item_id in self.item_ids[-1:])
            self.create(input=chosen, instructions="replaced", out_of_band=way == 5)

    def some_cancel(self) -> None:
        self.cancel(self.dice.choice((None, "resp_unknown", *self.wire.running)))

    def old_item(self) -> None:
        if not self.item_ids:
            return
        item_id = self.dice.choice(self.item_ids[-4:])
        match self.dice.randint(0, 4):
            case 0:
                self.delete(item_id)
            case 1:
                self.step(ev.ClientItemRetrieve("e_retrieve", item_id))
            case 2:
                reported = self.dice.choice((0, 300, 1000, 90_000))
                before = self.reported_ms.get(item_id, 0)
                self.reported_ms[item_id] = max(before, reported)
                self.step(ev.PlaybackReported(item_id, reported))
            case _:
                ms = self.dice.choice((0, 100, 700, 3000))
                sent = len(self.notices)
                before = self.truncated_ms.get(item_id)
                self.truncated_ms[item_id] = ms
                self.truncate(item_id, ms)
                if "ItemTruncated" not in self.names(sent):
                    if before is None:
                        del self.truncated_ms[item_id]
                    else:
                        self.truncated_ms[item_id] = before

    def nonsense(self) -> None:
        """One error, and nothing else of it."""
        if self.machine.lifecycle is Lifecycle.PARKED:
            return  # there is no client
        ctx, sent = self.machine.ctx, len(self.notices)
        before = ctx.settings, list(ctx.conversation)
        self._step(self.dice.choice(NONSENSE))
        (error,) = self.notices[sent:]
        assert isinstance(error, ErrorRaised) and error.client_event_id == NONSENSE_ID
        assert before == (ctx.settings, list(ctx.conversation))

    def new_settings(self) -> None:
        match self.dice.randint(0, 3):
            case 0:
                self.update(instructions=self.dice.choice(("Be brief.", "Be kind.")))
            case 1:
                self.update(voice=self.dice.choice(("alto", "bass")))
            case _:
                self.update(turn_detection=self.dice.choice(DETECTIONS))

    def socket(self) -> None:
        chance = self.dice.random()
        if chance < 0.6:
            running = set(self.wire.running)
            self.step(ev.Disconnected(resumable=True, is_silent=self.dice.random() < 0.5))
            over = {done.response.id for done in self.told(ResponseDone)}
            assert running <= over and not self.wire.running
            self.some_time()
            if self.machine.lifecycle is Lifecycle.PARKED:
                self.late_result()
                self.step(ev.Reconnected(self.position))
        elif chance < 0.8:
            self.step(ev.ShutDown(10_000))
        else:
            self.step(ev.Disconnected(self.dice.random() < 0.5))
            if self.dice.random() < 0.5:
                self.step(ev.ShutDown(10_000))
