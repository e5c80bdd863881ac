"""Records: what goes in comes out, damage is named, differences are found."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.fakes.virtual_time import run_virtual
from realtime.observe.metrics import Metrics
from realtime.runtime.codec import Unreadable, decode, encode, to_text
from realtime.runtime.recorder import FileRecorder
from realtime.runtime.replay import RecordDamaged, replay
from realtime.runtime.shell import SessionSetup
from realtime.runtime.simulate import simulate
from realtime.session.effects import Effect
from realtime.session.events import (
    AudioFrame,
    ClientResponseCreate,
    ClientSessionUpdate,
    Event,
    Opened,
    ReplyText,
)
from realtime.session.items import Item, ItemKind, Part, PartKind, Role
from realtime.session.ledger import Stamp, TurnTimeline
from realtime.session.machine import Machine
from realtime.session.settings import (
    Modality,
    ResponseOptions,
    ServerVad,
    SessionSettings,
    SettingsPatch,
)
from tests.realtime.runtime.stand_ins import ScriptedCascade, silence, tone

OPENED = Opened(1, SessionSettings(turn_detection=None), "browser", True, 9)
VALUES = [
    OPENED,
    ClientSessionUpdate(
        "e", SettingsPatch((("modality", Modality.TEXT), ("turn_detection", ServerVad())))
    ),
    ClientResponseCreate(
        None,
        ResponseOptions(
            metadata=(("a", "b"),),
            input=(
                Item("i", ItemKind.MESSAGE, role=Role.USER, parts=(Part(PartKind.INPUT_TEXT),)),
            ),
        ),
    ),
    TurnTimeline(None, "r", "completed", False, ((Stamp.CREATED, 0.1 + 0.2), (Stamp.DONE, 1e-9))),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_come_back_as_they_were(value: object) -> None:
    again = decode(json.loads(to_text(value)))
    assert again == value and type(again) is type(value)


@given(st.floats(), st.text(), st.integers())
def test_frames_come_back_bit_for_bit(number: float, text: str, whole: int) -> None:
    value = AudioFrame(whole, number, number)
    assert to_text(decode(json.loads(to_text(value)))) == to_text(value)
    assert decode(json.loads(json.dumps(encode((text, None, True))))) == (text, None, True)


@pytest.mark.parametrize(
    "data",
    [
        {"$": "Nothing"},
        {"$": "AudioFrame", "speed": 1},
        {"$": "Modality", "value": "smell"},
        {"a": 1},
        {"$": ["AudioFrame"]},
    ],
)
def test_what_is_no_value_is_refused(data: object) -> None:
    with pytest.raises(Unreadable):
        decode(data)
    with pytest.raises(TypeError, match="cannot hold a dict"):
        encode({})


def record(path: Path) -> int:
    """A conversation of two turns, with an interruption; how many events it took."""

    class Counter:
        count = 0

        def write(self, now_ms: float, event: Event, effects: list[Effect]) -> None:
            self.count += 1
            recorder.write(now_ms, event, effects)

    counter, recorder = Counter(), FileRecorder(path, Metrics())
    audio = [silence(500), tone(900), silence(1500), tone(900), silence(1500)]
    setup = SessionSetup(SessionSettings(), seed=3)

    async def main() -> None:
        await simulate(np.concatenate(audio), ScriptedCascade(), setup, recorder=counter)

    asyncio.run(main())
    recorder.close()
    return counter.count


def test_a_replay_does_the_same(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    events = record(path)
    report = replay(path)
    assert report.is_same and not report.is_truncated
    assert report.events == events > 200
    assert "the same effects" in report.describe()


def test_a_replay_names_the_first_difference(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    record(path)
    lines = path.read_text().splitlines()
    place = next(n for n, line in enumerate(lines) if "InputCommitted" in line)
    lines[place] = lines[place].replace("InputCommitted", "InputCleared", 1)
    path.write_text("\n".join(lines) + "\n")
    report = replay(path)
    assert report.difference is not None and report.difference.line == place + 1
    assert "InputCleared" in report.difference.expected
    assert "InputCommitted" in report.difference.got
    assert f"line {place + 1}" in report.describe()


def test_a_missing_effect_is_a_difference(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    record(path)
    lines = path.read_text().splitlines()
    body = json.loads(lines[1])
    body["effects"].append(body["effects"][0])
    lines[1] = json.dumps(body)
    path.write_text("\n".join(lines) + "\n")
    report = replay(path)
    assert report.difference is not None and report.difference.got == "nothing"


@pytest.mark.parametrize("lost", [1, 2, 40])
def test_a_record_of_a_killed_process_is_read_to_its_last_whole_line(
    tmp_path: Path, lost: int
) -> None:
    path = tmp_path / "session.jsonl"
    events = record(path)
    path.write_bytes(path.read_bytes()[:-lost])
    report = replay(path)
    assert report.is_truncated and report.is_same
    assert report.events == events - 1
    assert "incomplete" in report.describe()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", None),
        ('{"other": 1}\n', "not a record"),
        ("nonsense\n", "line 1"),
        ('{"record": 999}\n', "format 999"),
        ('{"record": 1}\n{"now_ms": 1}\n', "line 2: not an event"),
        ('{"record": 1}\n{"now_ms": 1, "event": {"$": "X"}, "effects": []}\n', "line 2"),
        ('{"record": 1}\n[]\n', "line 2"),
        ('{"record": 1}\n{broken\n{"now_ms": 1}\n', "line 2"),
    ],
)
def test_damage_is_named(tmp_path: Path, content: str, message: str | None) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text(content)
    if message is None:
        with pytest.raises(RecordDamaged, match="empty"):
            replay(path)
    else:
        with pytest.raises(RecordDamaged, match=message):
            replay(path)


def test_text_that_no_encoder_takes_does_not_end_a_record(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    recorder, machine = FileRecorder(path, Metrics()), Machine()
    for now_ms, event in enumerate(
        (OPENED, ReplyText("reply-1", "\ud83d"), ReplyText("reply-1", ""))
    ):
        recorder.write(now_ms, event, machine.step(event, now_ms))
    recorder.close()
    report = replay(path)
    assert report.is_same and report.events == 3


def test_a_record_never_overwrites_another(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    FileRecorder(path, Metrics()).close()
    with pytest.raises(FileExistsError):
        FileRecorder(path, Metrics())


def test_a_record_is_private(tmp_path: Path) -> None:
    path = tmp_path / "made" / "session.jsonl"
    FileRecorder(path, Metrics()).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_every_event_of_a_machine_can_be_recorded() -> None:
    """What the machine says about itself is within the vocabulary of records."""

    async def main() -> None:
        machine = Machine()
        effects = machine.step(Opened(1, SessionSettings(), "browser", True, 0), 0.0)
        assert decode([encode(effect) for effect in effects]) == tuple(effects)

    run_virtual(main())
