from __future__ import annotations

import dataclasses
import types
import typing
from enum import Enum
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pipelines.ports
import pipelines.runtime.messages
import pipelines.types
from pipelines.runtime.message_codec import STAGE_CODEC, Codec, MessageError, kinds_of
from pipelines.runtime.messages import Hurry, Output, Push, Start
from pipelines.types import Finished, SpeakRequest, SpeechDelta, TextDelta, ToolCall, Urgency
from tests.pipelines.waiting import UNHURRIED

KINDS = [
    *kinds_of(pipelines.types),
    *kinds_of(pipelines.ports),
    *kinds_of(pipelines.runtime.messages),
]
ANY_TEXT = st.text(st.characters(exclude_categories=()))  # also lone surrogates
NUMBERS = st.integers(-(2**63), 2**64 - 1)
FLOATS = st.floats(allow_nan=False)
SAMPLES = hnp.arrays(np.float32, st.integers(0, 50), elements=st.floats(-1, 1, width=32))
SCALARS = st.none() | st.booleans() | NUMBERS | FLOATS | ANY_TEXT | st.binary()
ANY = st.recursive(
    SCALARS | SAMPLES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(ANY_TEXT, inner, max_size=3)
    ),
    max_leaves=8,
)


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Everything that an annotation allows."""
    match annotation:
        case _ if annotation in (None, type(None)):
            return st.none()
        case _ if annotation is bool:
            return st.booleans()
        case _ if annotation is int:
            return NUMBERS
        case _ if annotation is float:
            return FLOATS
        case _ if annotation is str:
            return ANY_TEXT
        case _ if annotation is bytes:
            return st.binary(max_size=50)
        case _ if annotation is object:
            return ANY
        case type() if issubclass(annotation, Enum):
            return st.sampled_from(annotation)
        case type() if dataclasses.is_dataclass(annotation):
            return made(annotation)
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(values, inner))
    if origin is tuple and inner[1:] == (Ellipsis,):
        return st.lists(values(inner[0]), max_size=4).map(tuple)
    if origin is dict:
        return st.dictionaries(values(inner[0]), values(inner[1]), max_size=3)
    assert origin is np.ndarray, annotation
    return SAMPLES


def made(kind: Any) -> st.SearchStrategy[Any]:
    if issubclass(kind, Enum):
        return st.sampled_from(kind)
    hints = typing.get_type_hints(kind)
    fields = {field.name: values(hints[field.name]) for field in dataclasses.fields(kind)}
    return st.builds(kind, **fields)


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray):
        return (
            left.dtype == right.dtype and left.shape == right.shape and bool((left == right).all())
        )
    if dataclasses.is_dataclass(left):
        names = [field.name for field in dataclasses.fields(left)]
        return all(same(getattr(left, name), getattr(right, name)) for name in names)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(map(same, left.values(), right.values()))
    return left == right


def travelled(value: object) -> Any:
    # As a socket gives them: other memory, at any alignment.
    frames = [memoryview(b"\0" + bytes(frame))[1:] for frame in STAGE_CODEC.encode(value)]
    return STAGE_CODEC.decode(frames)


def packed(tree: object) -> bytes:
    header = msgpack.packb(tree, unicode_errors="surrogatepass")
    assert header is not None
    return header


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_type_arrives_as_it_was_sent(kind: type) -> None:
    @UNHURRIED
    @given(made(kind))
    def arrives(value: object) -> None:
        assert same(travelled(value), value)
        assert same(travelled(Output(3, value)), Output(3, value))

    arrives()


@UNHURRIED
@given(ANY)
def test_plain_values_arrive_as_they_were_sent(value: object) -> None:
    assert same(travelled(Push(1, value)), Push(1, value))


def test_all_that_stages_speak_of_can_travel() -> None:
    travelling = {kind.__name__ for kind in KINDS}
    assert {"SpeakRequest", "SpeechDelta", "WriteRequest", "Transcript", "Urgency"} <= travelling
    defined = vars(pipelines.types).items()
    assert {name for name, kind in defined if dataclasses.is_dataclass(kind)} <= travelling


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0,), np.float32),
        np.zeros((3, 0, 2), np.int64),
        np.array(7, np.int16),
        np.arange(12, dtype=np.float64).reshape(3, 4).T,
        np.arange(10, dtype=np.uint8)[::-2],
        np.arange(3, dtype=">f4"),
        np.array([True, False]),
        np.arange(2_000_000, dtype=np.float32),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_of_every_shape_arrive(array: np.ndarray[Any, Any]) -> None:
    arrived = travelled(array)
    assert same(arrived, array) and arrived.flags.aligned
    arrived[...] = 0  # whoever gets an array may change it


def test_the_samples_stand_in_a_frame_of_their_own_without_a_copy() -> None:
    samples = np.ones(960, np.float32)
    header, frame = STAGE_CODEC.encode(SpeechDelta(samples, 24_000, 1))
    assert len(header) < 100
    assert np.shares_memory(np.frombuffer(frame, np.float32), samples)


def test_numbers_out_of_arrays_are_numbers() -> None:
    sent = Output(np.int64(3), SpeakRequest("r", "v", speed=np.float32(0.5)))  # type: ignore[arg-type]
    assert same(travelled(sent), Output(3, SpeakRequest("r", "v", speed=0.5)))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (object(), "builtins.object is none of the types that travel"),
        ({1, 2}, "builtins.set is none"),
        ({1: "a"}, "builtins.dict is none"),
        (2**64, "cannot be sent"),
        (np.array([object()]), "an array of object .1. cannot be sent"),
        (SpeechDelta(np.zeros(3), 1, 1), r"SpeechDelta.samples is an array of float64 \[3\]"),  # type: ignore[arg-type]
        (SpeechDelta(np.zeros((3, 1), np.float32), 1, 1), r"float32 \[3, 1\], which does not fit"),
        (TextDelta(3), "TextDelta.text is int 3, which does not fit str"),  # type: ignore[arg-type]
        (Finished("stop"), "Finished.reason is str 'stop', which does not fit FinishReason"),  # type: ignore[arg-type]
        (Hurry(True, Urgency.DRAFT), "Hurry.stream is bool True"),
        (ToolCall("a", "b", None), "ToolCall.arguments is NoneType None"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_travel_is_refused_by_name(value: object, told: str) -> None:
    with pytest.raises(MessageError, match=told):
        STAGE_CODEC.encode(Push(1, value))


@pytest.mark.parametrize(
    ("tree", "told"),
    [
        (["Nothing", 1], "unknown type 'Nothing'"),
        (["Urgency", 9], "Urgency has no value"),
        (["Urgency"], "Urgency has no value"),
        (["TextDelta"], "TextDelta has 1 fields, and 0 came"),
        (["TextDelta", "a", "b"], "TextDelta has 1 fields, and 2 came"),
        (["TextDelta", 1], "TextDelta.text is int 1"),
        (["Open", "1", None], "Open.stream is str '1'"),
        (["WriteRequest", "r", [0, "no message"]], "WriteRequest has [0-9]+ fields, and 2 came"),
        ([9], "unknown type 9"),
        ([], "no tag"),
        ([[0]], "no tag"),
        ({"a": 1}, "no tag"),
        ([2, "key"], "no list of texts and values"),
        ([2, [0], 1], "no list of texts and values"),
        ([3, 0, "<f4", 1], "array is"),
        ([3, 2, "<f4", 1], "array is"),
        ([3, 1, "<f4", -1], "array is"),
        ([3, 1, "<f4", "1"], "array is"),
        ([3, 1, "<f4", 2], "has 4 bytes"),
        ([3, 1, "<f8", 1], "has 4 bytes"),
        ([3, 1, "O", 1], "dtype 'O', which is no number's"),
        ([3, 1, "sense", 1], "array of sense"),
        ([0, [3, 1, "<f4", 1], [3, 1, "<f4", 1]], "array is"),
        (None, "has 1 arrays and uses 0"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(tree: object, told: str) -> None:
    with pytest.raises(MessageError, match=told):
        STAGE_CODEC.decode([packed(tree), bytes(4)])


@UNHURRIED
@given(st.lists(st.binary(max_size=40), max_size=3))
def test_noise_is_never_more_than_a_message_error(frames: list[bytes]) -> None:
    try:
        STAGE_CODEC.decode(frames)
    except MessageError:
        pass


TREES = st.recursive(
    SCALARS | st.sampled_from([kind.__name__ for kind in KINDS]) | st.sampled_from(range(4)),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=20,
)


@UNHURRIED
@given(TREES, st.lists(st.binary(max_size=16), max_size=2))
def test_well_packed_nonsense_is_never_more_than_a_message_error(
    tree: object, arrays: list[bytes]
) -> None:
    try:
        STAGE_CODEC.decode([packed(tree), *arrays])
    except MessageError:
        pass


def test_a_codec_knows_only_its_own_types() -> None:
    with pytest.raises(MessageError, match="unknown type 'ToolCall'"):
        Codec([TextDelta]).decode(STAGE_CODEC.encode(ToolCall("a", "b", "{}")))
    with pytest.raises(TypeError, match="two types of messages are called TextDelta"):
        Codec([TextDelta, TextDelta])
    with pytest.raises(TypeError, match="neither a dataclass nor an enum"):
        Codec([int])


def test_a_field_of_a_type_that_cannot_travel_shows_at_once() -> None:
    @dataclasses.dataclass(frozen=True)
    class Odd:
        value: set[int]

    with pytest.raises(TypeError, match="cannot have a field of the type set"):
        Codec([Odd])


def test_arguments_of_a_factory_may_be_nested() -> None:
    arguments: dict[str, object] = {"voices": ["a", ("b", None)], "deep": {"x": {"y": 1.5}}}
    start = Start("tts", "a.b:c", arguments, ("", "/lib"), 30, 16)
    assert same(travelled(start), start)
