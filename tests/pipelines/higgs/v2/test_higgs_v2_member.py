"""What the members are described by, and what each of them refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelines.higgs.config import ARCHITECTURE, AudioConfig, HiggsConfigError
from pipelines.higgs.member import V2, V3, Member, StopRule, member_of
from pipelines.higgs.refusal import Refusal, Wish, check
from pipelines.higgs.v2.config import V2Config
from pipelines.higgs.v2.rope import RopeScaling
from pipelines.higgs.v2.synthetic import converted_config, published_config

AUDIO = AudioConfig()
END = AUDIO.end_code


def row(*codebooks: int) -> list[int]:
    """A row with the end code in these codebooks."""
    return [END if codebook in codebooks else 5 for codebook in range(AUDIO.codebooks)]


@pytest.mark.parametrize(
    ("member", "number", "codes", "frames"),
    [
        (V3, 20, row(), None),
        (V3, 20, row(0), 20),
        (V3, 20, row(0, 3), 20),
        (V3, 20, row(3), None),  # only codebook 0 ends
        (V3, 7, row(0), None),  # while the codebooks set in
        (V3, 8, row(0), 8),
        (V2, 20, row(), None),
        (V2, 20, row(0), 20),
        (V2, 20, row(3), 17),
        (V2, 20, row(3, 5), 17),
        (V2, 0, row(0), 0),
        (V2, 7, row(7), 0),
        (V2, 2, row(5), None),  # codebook 5 has not set in: such a row is never drawn
    ],
)
def test_where_speech_ends(
    member: Member, number: int, codes: list[int], frames: int | None
) -> None:
    assert member.stop_rule(AUDIO).frame_count(number, codes) == frames


@pytest.mark.parametrize("member", [V3, V2])
def test_the_end_is_known_before_its_last_row_is_launched(member: Member) -> None:
    """Codes are read one step late: an end in codebook 0 leaves six rows to be drawn."""
    stop = member.stop_rule(AUDIO)
    assert stop == StopRule(8, END, stop.watched, stop.deaf_rows)
    assert stop.row_count(20) == 27  # rows 0 to 26, the end was in row 20


def test_what_special_codes_within_frames_become() -> None:
    assert V3.stray_code(AUDIO) == 0
    assert V2.stray_code(AUDIO) == 1023


def test_a_checkpoint_tells_its_member() -> None:
    published = published_config()
    assert member_of(published) is V2
    assert member_of(converted_config(published)) is V2
    assert member_of({"architectures": [ARCHITECTURE]}) is V3
    for content in ({}, {"architectures": None}, {"architectures": ["LlamaForCausalLM"]}):
        with pytest.raises(HiggsConfigError, match="HiggsAudioModel"):
            member_of(content)


def test_both_forms_of_the_configuration_say_the_same() -> None:
    published = published_config()
    config = V2Config.of(published)
    assert V2Config.of(converted_config(published)) == config
    assert config.audio.begin_code == 16
    assert config.audio.codebook_size == 18
    assert config.rope_scaling == RopeScaling()
    assert config.backbone.rope_theta == 500_000.0


REFERENCE = Wish(text="Hi.", references=1, transcript="Hello.")


@pytest.mark.parametrize(
    ("member", "wish", "code", "field"),
    [
        (V2, Wish("<|emotion:awe|>Look."), "unsupported_control", "input"),
        (V2, Wish("Wait<|prosody:pause|>now."), "unsupported_control", "input"),
        (V2, Wish("Hi.", speed=1.5), "unsupported_speed", "speed"),
        (V3, Wish("Hi.", instructions="Softly."), "unsupported_instructions", "instructions"),
        (V2, replace(REFERENCE, references=2), "unsupported_references", "references"),
        (V3, replace(REFERENCE, references=2), "unsupported_references", "references"),
        (V2, replace(REFERENCE, transcript=None), "transcript_required", "reference_text"),
        (V2, replace(REFERENCE, transcript=" "), "transcript_required", "reference_text"),
    ],
)
def test_what_cannot_be_done_is_said(member: Member, wish: Wish, code: str, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        check(member, wish)
    assert refused.value.code == code
    assert refused.value.field == field
    assert member.name in refused.value.message
    assert isinstance(refused.value, ValueError)


def test_a_member_that_cannot_append_says_so() -> None:
    stiff = replace(V2, abilities=replace(V2.abilities, appends=False))
    wish = Wish("Hi.", follows_speech=True)
    check(V2, wish)
    with pytest.raises(Refusal) as refused:
        check(stiff, wish)
    assert refused.value.code == "unsupported_append"


@pytest.mark.parametrize(
    ("member", "wish"),
    [
        (V3, Wish("<|emotion:awe|>Look.", speed=1.4)),
        (V3, replace(REFERENCE, transcript=None)),
        (V2, REFERENCE),
        (V2, Wish("Hi.", instructions="Softly, in a church.")),
        (V2, Wish("A <|strange|> word.")),  # no control tag: the tokenizer's guard strikes it out
        (V2, Wish("Hi.", follows_speech=True)),
    ],
)
def test_what_can_be_done_passes(member: Member, wish: Wish) -> None:
    check(member, wish)
