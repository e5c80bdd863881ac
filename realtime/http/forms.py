"""Uploads, `multipart/form-data`, read within bounds of size, time and number.

What goes beyond a bound is refused at once, and the rest of the body is never read.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from realtime.http.bodies import receive
from realtime.http.lingering import Lingering
from realtime.http.reception import Refused, refuse

if TYPE_CHECKING:  # it exists for type checkers alone
    from python_multipart.multipart import MultipartCallbacks

TEXT_BYTES = 64 * 1024  # of a field that is no file; far more than any may hold
FRAME_BYTES = 128 * 1024  # of what a form holds beside its file
MOST_PARTS = 16  # far more than any form has fields
BODY_TIMEOUT_S = 120.0  # a large file over a slow line


@dataclass(frozen=True, slots=True)
class Form:
    """Fields by name; of a name that came twice, the last. texts: UTF-8."""

    texts: Mapping[str, str]
    files: Mapping[str, bytes]


@dataclass(slots=True)
class _Part:
    headers: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    name: str = ""
    is_file: bool = False
    data: bytearray = field(default_factory=bytearray)


async def read_form(request: Request, file_field: str, largest_file_bytes: int) -> Form:
    """file_field: the one that is named where an upload as a whole is at fault.

    Raises Refused: 400, 408, 413 or 415.
    """
    reader = _Reader(file_field)
    try:
        await _feed(reader, request, file_field, largest_file_bytes)
    except Refused as refused:
        raise Refused(Lingering(refused.response)) from refused
    return reader.finish()


async def _feed(
    reader: _Reader, request: Request, file_field: str, largest_file_bytes: int
) -> None:
    kind, options = parse_options_header(request.headers.get("content-type"))
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        why = "Send this as a form with a file in it: Content-Type multipart/form-data."
        raise refuse(415, "unsupported_media_type", why, file_field)
    chunks = receive(
        request,
        largest_file_bytes + FRAME_BYTES,
        BODY_TIMEOUT_S,
        too_large=f"Invalid '{file_field}': the upload is larger than "
        f"{largest_file_bytes // 2**20} MiB.",
        param=file_field,
    )
    try:
        parser = MultipartParser(boundary, reader.callbacks())
        async with aclosing(chunks):
            async for chunk in chunks:
                parser.write(chunk)
    except FormParserError as error:
        why = f"The form cannot be read ({error}): send multipart/form-data."
        raise refuse(400, "invalid_form", why, file_field) from None


class _Reader:
    """Collects the parts that the parser finds."""

    def __init__(self, file_field: str) -> None:
        self._file_field = file_field
        self._texts: dict[str, str] = {}
        self._files: dict[str, bytes] = {}
        self._part = _Part()
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._count = 0
        self._is_whole = False

    def callbacks(self) -> MultipartCallbacks:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._read_header_name,
            "on_header_value": self._read_header_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": self._read_data,
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def finish(self) -> Form:
        if not self._is_whole:
            why = "The form ends in the middle: its last boundary is missing. Send it again."
            raise refuse(400, "truncated_form", why, self._file_field)
        return Form(self._texts, self._files)

    def _begin(self) -> None:
        self._count += 1
        if self._count > MOST_PARTS:
            why = f"The form has more than {MOST_PARTS} fields."
            raise refuse(400, "invalid_form", why, self._file_field)
        self._part = _Part()

    def _read_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _read_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        self._part.headers[bytes(self._header_name).lower()] = bytes(self._header_value)
        self._header_name.clear()
        self._header_value.clear()

    def _end_headers(self) -> None:
        part = self._part
        _, options = parse_options_header(part.headers.get(b"content-disposition"))
        part.name = options.get(b"name", b"").decode(errors="replace")
        part.is_file = b"filename" in options

    def _read_data(self, data: bytes, start: int, end: int) -> None:
        self._part.data += data[start:end]
        if not self._part.is_file and len(self._part.data) > TEXT_BYTES:
            name = self._part.name[:100]
            why = f"Invalid '{name}': expected at most {TEXT_BYTES} bytes of text."
            raise refuse(400, "invalid_value", why, name)

    def _end(self) -> None:
        part = self._part
        if part.is_file:
            self._files[part.name] = bytes(part.data)
        else:
            try:
                self._texts[part.name] = part.data.decode()
            except UnicodeDecodeError:
                name = part.name[:100]
                why = f"Invalid '{name}': expected text in UTF-8."
                raise refuse(400, "invalid_value", why, name) from None
        part.data.clear()

    def _finish(self) -> None:
        self._is_whole = True
