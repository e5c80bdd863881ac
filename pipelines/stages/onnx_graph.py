"""Inner tensors of a model, which ONNX Runtime returns only if they are outputs of its graph.

A model is one protobuf message (onnx.proto), and protobuf messages merge when their bytes are
joined: a second message that holds nothing but one more graph output adds it to the model.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

# Field numbers of onnx.proto.
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_OUTPUT = 1, 12
_NODE_OUTPUT, _NODE_OPERATOR = 2, 4
_VALUE_NAME = 1

_LONGEST_BITS = 63  # of a number
_BYTES = 2  # protobuf's wire type of names and of messages

_Buffer = bytes | mmap.mmap


def with_output_of(model: Path, operator: str) -> tuple[bytes, str] | None:
    """The model with the result of its only node of `operator` as an output; and that one's name.

    None if the model has no such node, or several, or cannot be read: opening it tells why.
    """
    try:
        with (
            model.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole,
        ):
            names = list(_outputs_of(whole, operator))
            if len(names) != 1:
                return None
            output = _field(_MODEL_GRAPH, _field(_GRAPH_OUTPUT, _field(_VALUE_NAME, names[0])))
            is_one_already = names[0] in _graph_outputs(whole)
            return b"".join((whole, b"" if is_one_already else output)), names[0].decode()
    except (OSError, ValueError, IndexError):
        return None


def _outputs_of(model: _Buffer, operator: str) -> Iterator[bytes]:
    """The first output of every node of `operator`."""
    wanted = operator.encode()
    for graph_start, graph_end in _parts(model, 0, len(model), _MODEL_GRAPH):
        for start, end in _parts(model, graph_start, graph_end, _GRAPH_NODE):
            operators = _parts(model, start, end, _NODE_OPERATOR)
            if any(model[a:b] == wanted for a, b in operators):
                first, last = next(_parts(model, start, end, _NODE_OUTPUT), (0, 0))
                yield model[first:last]


def _graph_outputs(model: _Buffer) -> Iterator[bytes]:
    for graph_start, graph_end in _parts(model, 0, len(model), _MODEL_GRAPH):
        for start, end in _parts(model, graph_start, graph_end, _GRAPH_OUTPUT):
            for first, last in _parts(model, start, end, _VALUE_NAME):
                yield model[first:last]


def _parts(model: _Buffer, start: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
    """Where the contents of field `wanted` lie, each time it occurs in a message."""
    at = start
    while at < end:
        key, at = _varint(model, at)
        match key & 7:
            case 0:  # a number
                _, at = _varint(model, at)
            case 1:  # eight bytes
                at += 8
            case 2:  # bytes, `_BYTES`
                length, at = _varint(model, at)
                if key >> 3 == wanted:
                    yield at, at + length
                at += length
            case 5:  # four bytes
                at += 4
            case wire_type:
                raise ValueError(f"wire type {wire_type} at byte {at}: no ONNX model")


def _varint(model: _Buffer, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, lowest first; and where it ends."""
    number = shift = 0
    while True:
        byte = model[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at
        if shift > _LONGEST_BITS:
            raise ValueError(f"a number without an end at byte {at}: no ONNX model")


def _field(number: int, content: bytes) -> bytes:
    return _number(number << 3 | _BYTES) + _number(len(content)) + content


def _number(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
