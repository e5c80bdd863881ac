"""A sound that is made while the agent speaks, and what came of it.

The agent is asked, in writing, for something long; once it has been heard for a while, the sound is
made over it. The listener obeys `speech_started`, as a browser does.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np

from benchmarks.exchange import Talker, introduce
from benchmarks.listening import Outcome, Reaction, Span, audible, played, react
from benchmarks.recordings import voiced_spans
from realtime.commands.turns import Step, Turn
from realtime.commands.wire_client import WIRE_RATE_HZ, Pcm, open_client

REQUEST = (
    "Tell me a long story about a ship in a storm, in at least eight sentences. Do not stop early."
)
# The usual instructions ask for short answers, which end before anybody can interrupt them.
INSTRUCTIONS = (
    "You tell stories aloud. Tell long, calm stories of many short sentences, in plain words, "
    "without lists or headings."
)
HEARD_FIRST_MS = 1500  # the sound comes in the middle of the agent's speech, not at its start
SPEECH_LIMIT_MS = 30_000
ATTEMPTS = 3  # a reply may end before the sound does; then it measures nothing
SETTLE_MS = 2500  # after the sound: what was held back has gone on by then, or has not
ANSWER_LIMIT_MS = 10_000  # after the sound, for the answer to what was said
RETRIEVE_LIMIT_MS = 3000


@dataclass(frozen=True, slots=True)
class Overlap:
    """What came of one sound. Times are on the client's clock.

    heard: what the server's recogniser made of the sound; None where no turn came of it.
    answer_ms: from the end of the sound to the first sound of another reply.
    played: int16 [n] at WIRE_RATE_HZ of the reply, as far as it was heard.
    retrieved: the text of the reply's item, as the server keeps it.
    """

    sound: Span
    reaction: Reaction
    status: str | None = None
    response_id: str | None = None
    said: str = ""
    played: Pcm | None = None
    heard: str | None = None
    is_committed: bool = False
    answer_ms: float | None = None
    retrieved: str | None = None
    stray: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def talk_over(
    url: str,
    sound: Pcm,
    after_ms: float = HEARD_FIRST_MS,
    *,
    truncates: bool = True,
    retrieves: bool = False,
) -> Overlap:
    """Make a sound, whose first sample is its onset, when the agent has been heard for so long."""
    overlap = Overlap(Span(0.0, 0.0), Reaction(Outcome.UNMEASURED))
    for _ in range(ATTEMPTS):
        overlap = asyncio.run(_talk_over(url, sound, after_ms, truncates, retrieves))
        if overlap.reaction.outcome is not Outcome.UNMEASURED:
            break
    return overlap


async def _talk_over(
    url: str, sound: Pcm, after_ms: float, truncates: bool, retrieves: bool
) -> Overlap:
    async with open_client(url) as client:
        talker = Talker(client, truncates=truncates)
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(talker.listen())
            await introduce(client, instructions=INSTRUCTIONS)
            content = [{"type": "input_text", "text": REQUEST}]
            await client.send(
                "conversation.item.create",
                item={"type": "message", "role": "user", "content": content},
            )
            await client.send("response.create")
            await client.feed_silence(lambda: _is_heard(talker, after_ms), SPEECH_LIMIT_MS)
            begin = await talker.say(sound)
            voiced = voiced_spans(sound)
            end = begin + (voiced[-1][1] if voiced else len(sound))
            span = Span(client.spoken_at_ms(begin), client.spoken_at_ms(end))
            await client.feed_silence(lambda: _is_settled(talker, span), ANSWER_LIMIT_MS)
            reply = talker.log.turns[0] if talker.log.turns else Turn()
            if retrieves and reply.reply_item is not None:
                await client.send("conversation.item.retrieve", item_id=reply.reply_item)
                await client.feed_silence(
                    lambda: reply.reply_item in talker.retrieved, RETRIEVE_LIMIT_MS
                )
            listening.cancel()
    talker.log.complete_sounds()
    return _overlap(talker, span)


def _reply_item(talker: Talker) -> str | None:
    return talker.log.turns[0].reply_item if talker.log.turns else None


def _is_heard(talker: Talker, for_ms: float) -> bool:
    """Whether the agent has been audible for long enough."""
    item = _reply_item(talker)
    first_ms = talker.playback.first_audible_ms(item) if item is not None else None
    return first_ms is not None and talker.client.now_ms() - first_ms > for_ms


def _is_settled(talker: Talker, sound: Span) -> bool:
    """Whether it has shown what the agent makes of the sound."""
    now_ms = talker.client.now_ms()
    if now_ms < sound.end_ms + SETTLE_MS:
        return False
    item = _reply_item(talker)
    playing = talker.playback.playing_at(now_ms)
    return item is None or playing is not None or not (was_cut(talker) or talker.log.is_open)


def was_cut(talker: Talker) -> bool:
    """Whether some of the first reply was made and will never be heard."""
    reply = talker.log.turns[0]
    if reply.status == "cancelled":
        return True
    cuts = [f for f in talker.flushes if f.item_id == reply.reply_item and f.unheard_ms > 0]
    if not cuts:
        return False
    mine = [s.start_ms for s in talker.playback.segments if s.item_id == reply.reply_item]
    return not mine or mine[-1] < cuts[-1].at_ms


def _overlap(talker: Talker, sound: Span) -> Overlap:
    item = _reply_item(talker)
    if item is None:
        return Overlap(sound, Reaction(Outcome.UNMEASURED), errors=tuple(talker.log.errors))
    reply, *others = talker.log.turns
    segments = talker.playback.segments
    mine = [s.pcm for s in segments if s.item_id == item]
    answers = [
        turn.steps_ms[Step.FIRST_SOUND] for turn in others if Step.FIRST_SOUND in turn.steps_ms
    ]
    committed = [turn for turn in others if Step.COMMITTED in turn.steps_ms]
    return Overlap(
        sound,
        react(
            sound,
            played(segments, WIRE_RATE_HZ, item),
            audible(segments, WIRE_RATE_HZ, item),
            was_cut=was_cut(talker),
        ),
        reply.status,
        reply.response_id,
        reply.said,
        np.concatenate(mine) if mine else np.zeros(0, np.int16),
        " ".join(turn.heard for turn in committed if turn.heard) if committed else None,
        bool(committed),
        min(answers) - sound.end_ms if answers else None,
        _text_of(talker.retrieved.get(item)),
        tuple(talker.stray),
        tuple(talker.log.errors),
    )


def _text_of(item: dict | None) -> str | None:
    if item is None:
        return None
    parts = [part.get("transcript") or part.get("text") or "" for part in item["content"]]
    return " ".join(part for part in parts if part)
