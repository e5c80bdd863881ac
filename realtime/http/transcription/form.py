"""The upload of a sound file: spooled to the disk as it comes, bounded in size and time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from realtime.http.bodies import receive
from realtime.http.reception import Refused, refuse
from realtime.http.transcription.schema import gather_fields

LARGEST_BODY_BYTES = 1_000_000_000
TEXT_BYTES = 64 * 1024  # of a field that is no file; far more than any may hold
NAME_CHARACTERS = 100  # of a field's own name, in an answer
MOST_FIELDS = 256  # lists come as a field for each entry
BODY_TIMEOUT_S = 1800.0  # the largest body over the slowest line worth waiting for
FILE = "file"


@dataclass(frozen=True, slots=True)
class Upload:
    """file: open, at its start; whoever has it closes it. fields: the others, by name."""

    file: UploadFile
    fields: dict[str, Any]


async def read_upload(request: Request) -> Upload:
    """Raises Refused: 400, 408, 413 or 415. A refusal closes the connection, on which the rest of
    the body may be on its way."""
    try:
        _check_head(request)
        return await _read(request)
    except Refused as refused:
        refused.response.headers["Connection"] = "close"
        raise


def _check_head(request: Request) -> None:
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        why = "Send a form with the sound file in its field 'file': multipart/form-data."
        raise refuse(415, "unsupported_media_type", why, FILE)


async def _read(request: Request) -> Upload:
    body = _Body(request)
    try:
        async with aclosing(body.chunks()) as chunks:
            form = await _Parser(request, chunks, body).parse()  # closes its file if it fails
    except (MultiPartException, UnicodeError) as error:  # the latter of an odd charset
        raise refuse(400, "invalid_form", _why_no_form(error), FILE) from None
    found = form.get(FILE)
    if not isinstance(found, UploadFile):
        await form.close()
        raise _no_file(is_text=found is not None)
    if not found.size:
        await form.close()
        raise refuse(400, "invalid_value", "Invalid 'file': it is empty.", FILE)
    texts = [(name, text) for name, text in form.multi_items() if isinstance(text, str)]
    return Upload(found, gather_fields(texts))


class _Body:
    """What the client sends, and whether it is a whole form."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.is_form_whole = False

    async def chunks(self) -> AsyncGenerator[bytes]:
        megabytes = LARGEST_BODY_BYTES // 1_000_000
        too_large = f"Invalid 'file': the upload is larger than {megabytes} MB. Send a compressed"
        received = receive(
            self._request,
            LARGEST_BODY_BYTES,
            BODY_TIMEOUT_S,
            too_large=f"{too_large} format.",
            param=FILE,
        )
        async with aclosing(received):
            async for chunk in received:
                yield chunk
        # Told from here, so that the parser closes its file.
        if not self.is_form_whole:
            why = "The form ends in the middle: its last boundary is missing. Send it again."
            raise refuse(400, "truncated_form", why, FILE)


class _Parser(MultiPartParser):
    def __init__(self, request: Request, chunks: AsyncGenerator[bytes], body: _Body) -> None:
        super().__init__(
            request.headers,
            chunks,
            max_files=1,
            max_fields=MOST_FIELDS,
            max_part_size=TEXT_BYTES,
        )
        self._body = body

    def on_part_begin(self) -> None:
        super().on_part_begin()
        self._charset = "utf-8"  # that of the head has no meaning (RFC 7578)

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        part = self._current_part
        if part.file is None and len(part.data) + end - start > TEXT_BYTES:
            raise _wrong_text(part.field_name, f"expected at most {TEXT_BYTES} bytes of text")
        super().on_part_data(data, start, end)

    def on_part_end(self) -> None:
        part = self._current_part
        if part.file is None:
            try:
                part.data.decode()
            except UnicodeDecodeError:
                raise _wrong_text(part.field_name, "expected text in UTF-8") from None
        super().on_part_end()

    def on_end(self) -> None:
        self._body.is_form_whole = True


def _wrong_text(name: str, why: str) -> Refused:
    shown = name[:NAME_CHARACTERS]
    return refuse(400, "invalid_value", f"Invalid '{shown}': {why}.", shown)


def _why_no_form(error: Exception) -> str:
    """The parser's words, where they tell more than that a field came twice."""
    said = str(error)
    if said.startswith("Too many files"):
        return "Invalid 'file': expected one file, but got several. Send each by itself."
    if said.startswith("Too many fields"):
        return f"The form has more than {MOST_FIELDS} fields beside 'file'."
    return f"The form cannot be read: {said[:1].lower()}{said[1:]}"


def _no_file(*, is_text: bool) -> Refused:
    if is_text:
        why = "Invalid 'file': expected an uploaded file, with a file name, but got a text."
        return refuse(400, "invalid_type", why, FILE)
    return refuse(400, "missing_required_parameter", "Missing required parameter: 'file'.", FILE)
