"""Recordings that a speech request brings along or points to, as bytes."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import NoReturn
from urllib.parse import unquote

from realtime.http.reception import refuse
from realtime.http.speech.schema import Reference
from realtime.protocol.problems import excerpt, invalid

# (where it is, the field that says so) to the recording. Raises Refused, which names the field.
ReadSource = Callable[[str, str], Awaitable[bytes]]


class Sources:
    """Reads what a field holds. Addresses say by themselves what they are, in any field.

    fetch: what is at a URL. read_path: in a file that the configuration allows. Everything here
        raises Refused, which names the field.
    """

    def __init__(self, fetch: ReadSource, read_path: ReadSource) -> None:
        self._fetch = fetch
        self._read_path = read_path

    async def read_reference(self, reference: Reference, path: str) -> tuple[bytes, str]:
        """The recording, and the field that named it; `path` is the reference's own."""
        if reference.data is not None:
            field, source, usual = f"{path}.data", reference.data, _decode
        elif reference.audio_url is not None:
            field, source, usual = f"{path}.audio_url", reference.audio_url, _refuse_address
        else:
            field, source, usual = f"{path}.audio_path", reference.audio_path or "", self._open
        return await self._read(source, field, usual), field

    async def read_any(self, source: str, field: str) -> bytes:
        """A field that may hold a recording in any of the ways."""
        return await self._read(source, field, self._guess)

    async def _read(self, source: str, field: str, usual: ReadSource) -> bytes:
        scheme = source[:8].lower()
        if scheme.startswith("data:"):
            return await asyncio.to_thread(_decode_data_url, source, field)
        if scheme.startswith(("http://", "https://")):
            return await self._fetch(source, field)
        if scheme.startswith("file://"):
            return await self._open(_path_of(source, field), field)
        return await usual(source, field)

    async def _guess(self, source: str, field: str) -> bytes:
        """Base64 has no dots. It may begin with two slashes, as that of MP3 does, but not one."""
        if source.startswith((".", "~")) or (source[:1] == "/" and source[1:2] != "/"):
            return await self._open(source, field)
        return await _decode(source, field)

    async def _open(self, path: str, field: str) -> bytes:
        if not path:
            _refuse_value(field, "the path is empty")
        return await self._read_path(path, field)


class LastFetched:
    """Fetches, but for what was asked for just before: a batch may have one recording in common."""

    def __init__(self, fetch: ReadSource) -> None:
        self._fetch = fetch
        self._lock = asyncio.Lock()
        self._url: str | None = None
        self._data = b""

    async def __call__(self, url: str, field: str) -> bytes:
        async with self._lock:
            if url != self._url:
                self._data = await self._fetch(url, field)
                self._url = url
            return self._data


def _path_of(source: str, field: str) -> str:
    """RFC 8089: this machine is no host, or is called localhost."""
    host, slash, path = source[len("file://") :].partition("/")
    if host.lower() not in ("", "localhost"):
        why = f"it names another host, {excerpt(host)}: write 'file:///' and the path"
        _refuse_value(field, why)
    return unquote(f"{slash}{path}")


async def _refuse_address(source: str, field: str) -> bytes:
    _refuse_value(field, f"{excerpt(source)} is no http, https or data URL")


async def _decode(source: str, field: str) -> bytes:
    """In a thread: 40 MB take a tenth of a second."""
    return await asyncio.to_thread(_decode_base64, source, field)


def _decode_data_url(source: str, field: str) -> bytes:
    """RFC 2397, in base64 alone: nobody writes sound in percent signs."""
    head, comma, data = source.partition(",")
    if not comma or not head.lower().endswith(";base64"):
        _refuse_value(field, "a data URL must read 'data:audio/wav;base64,' and then the data")
    return _decode_base64(data, field)


def _decode_base64(source: str, field: str) -> bytes:
    try:
        data = base64.b64decode(source, validate=True)
    except (binascii.Error, ValueError) as error:
        _refuse_value(field, f"it is no valid base64 ({error})", "invalid_base64")
    if not data:
        _refuse_value(field, "it is empty", "invalid_base64")
    return data


def _refuse_value(field: str, why: str, code: str = "invalid_value") -> NoReturn:
    raise refuse(400, code, invalid(field, f"Invalid '{field}': {why}.").message, field)
