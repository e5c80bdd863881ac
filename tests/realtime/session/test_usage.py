"""What a response has cost is told at each of its ends, as far as the stages can tell."""

from __future__ import annotations

import pytest

from realtime.protocol.response_view import response_view
from realtime.session import events as ev
from realtime.session.notices import ResponseDone, ResponseUsage
from tests.realtime.session.script import Script


def usages(script: Script) -> list[ResponseUsage | None]:
    return [done.response.usage for done in script.told(ResponseDone)]


def begun(script: Script) -> None:
    """A response with 20 tokens read, 8 of them from the cache, and 3 written."""
    script.create()
    script.step(ev.ReplyUsage(script.reply, 12, 8, 0))
    script.write("It is")
    script.speak(1000)
    script.step(ev.ReplyUsage(script.reply, 20, 8, 3))


SO_FAR = ResponseUsage(20, 8, 3)


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter"])
def test_an_end_tells_its_own(reason: str) -> None:
    script = Script()
    begun(script)
    script.finish(reason)
    script.wait(2000)
    assert usages(script) == [ResponseUsage(10, 2, 5)]


def test_a_cancelled_response_tells_what_it_had_used() -> None:
    script = Script()
    begun(script)
    script.cancel()
    assert usages(script) == [SO_FAR]


def test_an_interrupted_response_tells_what_it_had_used() -> None:
    script = Script()
    begun(script)
    script.wait(400)
    script.say(640)
    assert usages(script) == [SO_FAR]


def test_a_failed_response_tells_what_it_had_used() -> None:
    script = Script()
    begun(script)
    script.fail()
    script.wait(2000)
    assert usages(script) == [SO_FAR]


def test_a_response_without_a_word_has_cost_nothing_that_is_known() -> None:
    script = Script()
    script.create()
    script.cancel()
    script.create()
    script.wait(60_000)
    assert usages(script) == [ResponseUsage(), ResponseUsage()]


def test_what_a_draft_has_used_counts_when_it_becomes_the_reply() -> None:
    script = Script(drafts=True)
    script.say(640)
    script.silence(256)
    (draft,) = script.drafts
    script.step(ev.ReplyUsage(draft, 20, 8, 3))
    script.silence(640)
    script.cancel()
    assert usages(script) == [SO_FAR]


def test_a_side_response_has_a_count_of_its_own() -> None:
    script = Script()
    begun(script)
    script.create(out_of_band=True)
    script.step(ev.ReplyUsage(script.reply, 7, 0, 1))
    script.cancel()
    side = next(iter(script.machine.side._responses))  # pyright: ignore[reportPrivateUsage]
    script.cancel(side)
    assert usages(script) == [SO_FAR, ResponseUsage(7, 0, 1)]


def test_what_comes_after_the_end_changes_nothing() -> None:
    script = Script()
    begun(script)
    request = script.reply
    script.cancel()
    before = len(script.notices)
    script.step(ev.ReplyUsage(request, 99, 0, 99))
    assert len(script.notices) == before


@pytest.mark.parametrize("ending", ["stop", "length", "cancel", "fail"])
def test_the_details_add_up_on_the_wire(ending: str) -> None:
    script = Script()
    begun(script)
    if ending == "cancel":
        script.cancel()
    elif ending == "fail":
        script.fail()
    else:
        script.finish(ending)
    script.wait(2000)
    usage = response_view(script.told(ResponseDone)[0].response)["usage"]
    read, written = usage["input_token_details"], usage["output_token_details"]
    cached = read["cached_tokens_details"]
    kinds = ("text_tokens", "audio_tokens", "image_tokens")
    assert usage["input_tokens"] == sum(read[kind] for kind in kinds) > 0
    assert usage["output_tokens"] == written["text_tokens"] + written["audio_tokens"] > 0
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert read["cached_tokens"] == sum(cached[kind] for kind in kinds) <= usage["input_tokens"]
