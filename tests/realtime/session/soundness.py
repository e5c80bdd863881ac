"""What must hold after every step, whatever has happened: the invariants, looked inside."""

from __future__ import annotations

from realtime.session import effects as fx
from realtime.session.creation import Debt
from realtime.session.deadlines import Due
from realtime.session.listening import IN_TURN, ONSETS
from realtime.session.states import Drafting, Lifecycle, Listening, Speaking
from tests.realtime.session.script import Script

BUSY = (Speaking.WAITING, Speaking.SPEAKING, Speaking.HELD)


def check(script: Script) -> None:
    """Raises AssertionError on the first thing that does not fit together."""
    machine = script.machine
    if machine.lifecycle is Lifecycle.CLOSED:
        _check_closed(script)
        return
    _check_deadlines(script)
    _check_regions(script)
    _check_work(script)
    assert script.item_ids == script.wire.order, "the client would build another conversation"
    assert machine.lifecycle is not Lifecycle.PARKED or not script.works


def _check_closed(script: Script) -> None:
    assert script.machine.next_deadline_ms() is None
    assert not script.works, f"after the end: {sorted(script.works)}"
    assert not script.kept, f"audio of turns {script.kept} is kept after the end"
    unsent = [name for name, reply in script.egress.replies.items() if reply.sent < reply.produced]
    assert not unsent, f"audio of {unsent} waits after the end"
    assert not script.wire.running, "a response never ended"


def _check_deadlines(script: Script) -> None:
    """Every deadline belongs to a state, and every state that waits has its deadline."""
    machine = script.machine
    armed = machine.ctx.deadlines.armed
    state, hearing = machine.speaking.state, machine.listening.state
    assert armed(Due.FIRST_OUTPUT) == (state is Speaking.WAITING)
    assert armed(Due.STARVED) == (state is Speaking.SPEAKING)
    assert armed(Due.HOLD) == (state in (Speaking.HELD, Speaking.HELD_TAIL))
    if state in (Speaking.TAIL, Speaking.HELD_TAIL):
        assert armed(Due.PLAYBACK_END)
    if state is Speaking.IDLE:
        assert not armed(Due.PLAYBACK_END)
    else:
        assert not armed(Due.IDLE)
    assert armed(Due.AUDIO_GAP) == (hearing is not Listening.QUIET)
    assert armed(Due.RESUME) == (machine.lifecycle is Lifecycle.PARKED)
    assert armed(Due.DRAIN) == (machine.lifecycle is Lifecycle.DRAINING)
    subjects = machine.ctx.deadlines._at_ms
    awaited = set(machine.turns._heard_by) | set(machine.turns._items)
    turn = machine.listening.turn
    if turn is not None and turn.is_listening:
        awaited.discard(turn.recognition or "")  # bounded by the turn's own length
    assert {subject for due, subject in subjects if due is Due.TRANSCRIPT} == awaited
    assert {subject for due, subject in subjects if due is Due.TOOL} == machine.ctx.tools._pending
    sides = set(machine.side._responses)
    assert {subject for due, subject in subjects if due is Due.STARVED and subject} == sides


def _check_regions(script: Script) -> None:
    machine = script.machine
    hearing, speaking, drafting = machine.listening, machine.speaking, machine.drafting
    is_manual = machine.ctx.settings.turn_detection is None
    assert hearing.state is Listening.QUIET or not is_manual
    if machine.lifecycle in (Lifecycle.LIVE, Lifecycle.DRAINING):
        assert (hearing.turn is None) == (hearing.state is Listening.QUIET and not is_manual)
    is_voiced = hearing.state in (*ONSETS, Listening.TALKING)
    assert hearing.voice.is_up == (is_voiced and hearing.state is not Listening.MURMUR)
    if hearing.turn is not None and hearing.state in IN_TURN:
        assert hearing.turn.is_announced
    if speaking.state in (Speaking.HELD, Speaking.HELD_TAIL):
        assert hearing.state in ONSETS, "held although nobody may be starting to talk"
        assert machine.ctx.settings.interrupts_responses
    response = speaking.response
    is_running = response is not None and not response.is_done
    assert is_running == (speaking.state in BUSY)
    assert (speaking._queued is None) or speaking.state in BUSY
    if speaking.debt is not Debt.NOTHING:
        assert hearing.state in IN_TURN or machine.turns.is_concluding, "a debt is never paid"
    assert (drafting.reply is not None) == (drafting.state is Drafting.RUNNING)
    if drafting.state is Drafting.RUNNING:
        assert hearing.state in (Listening.PAUSE, Listening.ONSET_PAUSE)
    for track in machine.ctx.playback._tracks.values():
        assert track.sent_samples == sum(samples for _, samples in track.spans)
    reserved = machine.ctx.conversation._reserved
    open_ids = {turn.item_id for turn in machine.turns._ended}
    open_ids |= {hearing.turn.item_id} if hearing.turn else set()
    writing = {output.item_id for r in script.wire.running.values() for output in r.outputs}
    assert open_ids <= reserved <= open_ids | writing


def _check_work(script: Script) -> None:
    """Nothing runs of which the machine has lost track."""
    machine = script.machine
    known = set(machine.turns._heard_by) | set(machine.turns._items)
    turn, response = machine.listening.turn, machine.speaking.response
    known |= {turn.judge_request or ""} if turn else set()
    known |= {machine.preparation._request or ""}
    replies = [response.reply] if response and not response.is_done else []
    replies += [machine.drafting.reply]
    replies += [side.reply for side in machine.side._responses.values()]
    known |= {reply.request for reply in replies if reply}
    assert set(script.works) <= known, f"forgotten: {set(script.works) - known}"
    live = {turn.number} if turn else set()
    live |= {turn.number for turn in machine.turns._ended}
    assert script.kept == live, "audio is kept of turns that are over, or not kept"
    unplayed = {name for name, reply in script.egress.replies.items() if not reply.play}
    assert unplayed <= known, f"audio of {unplayed - known} waits for nobody"


def check_settled(script: Script) -> None:
    """After enough time nothing is under way but what may last for ever."""
    machine = script.machine
    check(script)
    if machine.lifecycle is Lifecycle.CLOSED:
        return
    assert machine.listening.state is Listening.QUIET
    assert machine.speaking.state is Speaking.IDLE
    assert machine.drafting.state is Drafting.NONE
    assert not machine.turns.is_concluding
    assert not script.works and not script.egress.replies
    assert not script.wire.running
    assert not [item_id for item_id in script.wire._announced if machine.listening.turn is None]
    dues = {due for due, _ in machine.ctx.deadlines._at_ms}
    assert dues <= {Due.IDLE, Due.TOOL}
    assert not [effect for effect in script.log[-1][2] if isinstance(effect, fx.StartReply)]
