"""Text that somebody pushes, and what is heard of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines import ports
from pipelines.fakes.cascade import FakeCascade
from pipelines.fakes.virtual_time import run_virtual
from pipelines.types import Drawing, SpeakRequest, SpeechDelta, StageError, Urgency, VoiceSample
from tests.pipelines.waiting import UNHURRIED

REQUEST = SpeakRequest("r", "tone")
TEXT = (
    "It costs **$5.20**, and see [the page](https://a.example/b) for 3 km of `code`.\n"
    "- First, that. 🙂\n- Then 你好世界。 And more of what was there, if you like it!\n\n"
    "```py\nx = 1\n```\nDr. Smith came at 5 p.m. and said that it was so."
)


def with_cascade(
    body: Callable[[FakeCascade], Awaitable[None]], cascade: FakeCascade | None = None
) -> None:
    async def main() -> None:
        chosen = cascade or FakeCascade()
        await chosen.start(lambda line: None)
        try:
            await body(chosen)
            await reaped(chosen)
        finally:
            await chosen.close()
        assert len(asyncio.all_tasks()) == 1

    run_virtual(main())


async def reaped(cascade: FakeCascade) -> None:
    for _ in range(20):
        await asyncio.sleep(0)
    assert cascade.active == 0


async def turns(count: int = 30) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def hear(stream: ports.SpeechStream) -> list[SpeechDelta]:
    return [delta async for delta in stream]


async def say(cascade: FakeCascade, *pieces: str) -> list[SpeechDelta]:
    stream = cascade.speak(REQUEST)
    for piece in pieces:
        await stream.push(piece)
    await stream.finish()
    return await hear(stream)


def given_to_voice(cascade: FakeCascade) -> list[str]:
    return [text for _, text in cascade.speaker.pushed]


def pieces_of(text: str, cuts: Sequence[int]) -> list[str]:
    places = sorted({0, len(text), *cuts})
    return [text[a:b] for a, b in zip(places, places[1:], strict=False)]


def check_positions(deltas: list[SpeechDelta], text: str) -> None:
    heard = 0
    for delta in deltas:
        ends = [heard, *(word.text_end for word in delta.words), delta.text_end]
        assert ends == sorted(ends)
        heard = delta.text_end
    assert heard == len(text)


# ---- what is heard ---------------------------------------------------------------------------


@settings(UNHURRIED, max_examples=40)
@given(cuts=st.lists(st.integers(0, len(TEXT)), max_size=12))
def test_a_text_sounds_the_same_wherever_it_is_split(cuts: list[int]) -> None:
    async def body(cascade: FakeCascade) -> None:
        whole = await say(cascade, TEXT)
        said = given_to_voice(cascade)
        cascade.speaker.pushed.clear()
        split = await say(cascade, *pieces_of(TEXT, cuts))
        assert given_to_voice(cascade) == said
        for one, other in zip(whole, split, strict=True):
            assert (one.text_end, one.words) == (other.text_end, other.words)
            assert np.array_equal(one.samples, other.samples)
        check_positions(whole, TEXT)

    with_cascade(body)


def test_every_character_by_itself_sounds_the_same() -> None:
    async def body(cascade: FakeCascade) -> None:
        await say(cascade, TEXT)
        said = given_to_voice(cascade)
        cascade.speaker.pushed.clear()
        await say(cascade, *TEXT)
        assert given_to_voice(cascade) == said

    with_cascade(body)


def test_words_end_where_they_stand_in_the_pushed_text() -> None:
    text = "It costs **$5.20**, or so."

    async def body(cascade: FakeCascade) -> None:
        deltas = await say(cascade, text)
        assert "".join(given_to_voice(cascade)) == "It costs five dollars and twenty cents, or so."
        ends = [word.text_end for delta in deltas for word in delta.words]
        # A word goes on to the next one; what is said as several has one end.
        assert ends == [text.index(word) for word in ("costs", "**$", "or", "so")] + [len(text)]

    with_cascade(body)


def test_what_cannot_be_spoken_at_the_end_is_covered_without_sound() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        await stream.push("So it is.")
        await stream.flush()
        await asyncio.sleep(1)
        await stream.push(" 🙂")
        await stream.finish()
        deltas = await hear(stream)
        assert deltas[-1].text_end == len("So it is. 🙂")
        assert [len(delta.samples) for delta in deltas] == [7200] * 3 + [0]

    with_cascade(body)


@pytest.mark.parametrize("pieces", [(), ("",), ("  \n",), ("🙂", " …"), ("***",)])
def test_nothing_to_say_ends_without_sound(pieces: tuple[str, ...]) -> None:
    async def body(cascade: FakeCascade) -> None:
        assert await say(cascade, *pieces) == []
        assert given_to_voice(cascade) == []

    with_cascade(body)


def test_the_request_reaches_the_voice_as_it_is() -> None:
    sample, drawing = VoiceSample(b"RIFF", "hello"), Drawing(temperature=0.5, seed=7)

    async def body(cascade: FakeCascade) -> None:
        request = SpeakRequest("r", "tone", speed=2.0, sample=sample, drawing=drawing)
        stream = cascade.speak(request)
        await stream.push("Good day.")
        await stream.finish()
        assert [len(delta.samples) for delta in await hear(stream)] == [3600, 3600]
        assert list(cascade.speaker.requests) == [request]
        assert cascade.copies_voices

    with_cascade(body)


def test_a_voice_that_copies_none_refuses_a_sample() -> None:
    async def body(cascade: FakeCascade) -> None:
        assert not cascade.copies_voices
        stream = cascade.speak(SpeakRequest("r", "tone", sample=VoiceSample(b"RIFF")))
        with pytest.raises(StageError) as caught:
            await hear(stream)
        assert caught.value.code == "copying_unsupported"

    with_cascade(body, FakeCascade(copies_voices=False))


def test_the_first_sound_is_urgent_and_the_rest_is_not() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        await stream.push("One two three, four five.")
        await stream.finish()
        reader = aiter(stream)
        await anext(reader)
        (voice,) = cascade.speaker._streams  # what the voice itself goes by
        assert voice.ticket.urgency is Urgency.STEADY
        assert cascade.speaker.requests[0].urgency is Urgency.FIRST_AUDIO
        assert [delta async for delta in reader]

    with_cascade(body)


# ---- when it is said -------------------------------------------------------------------------


async def spoken_after(cascade: FakeCascade, ms: float) -> str:
    await asyncio.sleep(ms / 1000)
    await turns()
    return "".join(given_to_voice(cascade))


def test_a_flush_speaks_what_was_pushed_and_the_text_goes_on() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        await stream.push("Well")
        assert await spoken_after(cascade, 5_000) == ""
        await stream.flush()
        assert await spoken_after(cascade, 0) == "Well "
        await stream.push("then, it is")
        await stream.flush()
        await stream.flush()
        assert await spoken_after(cascade, 0) == "Well then, it is "
        await stream.push(" so.")
        await stream.finish()
        deltas = await hear(stream)
        assert "".join(given_to_voice(cascade)) == "Well then, it is so."
        check_positions(deltas, "Wellthen, it is so.")
        assert len(deltas) == 5

    with_cascade(body)


@pytest.mark.parametrize("text", ["```py\nx = 1", "see `a.b", "[a](http", "$5", "12", "你好", "a-"])
def test_a_flush_releases_what_waits_for_its_end(text: str) -> None:
    async def body(cascade: FakeCascade) -> None:
        await say(cascade, text)
        at_the_end = [said.strip() for said in given_to_voice(cascade)]
        cascade.speaker.pushed.clear()
        stream = cascade.speak(REQUEST)
        await stream.push(text)
        await stream.flush()
        await turns()
        assert [said.strip() for said in given_to_voice(cascade)] == at_the_end
        await stream.push("\n```\nAnd so on.")
        await stream.finish()
        check_positions(await hear(stream), text + "\n```\nAnd so on.")

    with_cascade(body)


def test_a_writer_that_pauses_has_its_whole_words_spoken() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        await stream.push("I can hel")
        assert await spoken_after(cascade, 140) == ""
        assert await spoken_after(cascade, 20) == "I can "
        await stream.push("p you.")
        await stream.finish()
        await hear(stream)
        assert "".join(given_to_voice(cascade)) == "I can help you."

    with_cascade(body)


def test_speech_begins_while_the_text_is_written() -> None:
    async def body(cascade: FakeCascade) -> None:
        stream = cascade.speak(REQUEST)
        heard_ms: list[float] = []

        async def listen() -> None:
            async for _ in stream:
                heard_ms.append(asyncio.get_running_loop().time() * 1000)  # noqa: PERF401

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(listen())
            for word in "I can help you with that, if you tell me more about it.".split():
                await stream.push(word + " ")
                await asyncio.sleep(0.1)
            ended_ms = asyncio.get_running_loop().time() * 1000
            await stream.finish()
        assert heard_ms[0] < 500 < ended_ms

    with_cascade(body)
