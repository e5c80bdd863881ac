"""Recordings that a request points to: at a URL, or on the server's disk.

A URL makes the server a visitor of somebody else's choice. Each host is resolved once and refused
unless all of its addresses are public; the connection goes to one of those very addresses, so that
no second answer of the name service can lead elsewhere. Redirects are followed in the same way.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from realtime.http.reception import Refused, refuse
from realtime.http.references.addresses import is_public_address
from realtime.http.references.local_files import PathRefused, read_inside

LARGEST_BYTES = 24 * 2**20  # half a minute at 96 kHz in stereo float32, and its header
FETCH_TIMEOUT_S = 10.0  # for all of it, redirects included: somebody waits for speech
MOST_REDIRECTS = 3
MOST_ADDRESSES = 3  # of one host that are tried; the first that answers serves
MAX_URL_CHARACTERS = 2048
WEB_PORTS = (80, 443)
MOST_FETCHES = 8  # at once; each may hold a whole recording
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "Accept": "audio/*, application/octet-stream;q=0.8, */*;q=0.5",
    "Accept-Encoding": "identity",
    "User-Agent": "parley",
}

Resolve = Callable[[str, int], Awaitable[list[str]]]

# Of a visit; the last of a redirect to a host that is no name.
_BROKEN = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, UnicodeError)


@dataclass(frozen=True, slots=True)
class ReferenceRules:
    """remote: whether anything is fetched over http(s). folders: whose files may be read."""

    remote: bool = False
    folders: tuple[Path, ...] = ()
    ports: tuple[int, ...] = WEB_PORTS


async def resolve_host(host: str, port: int) -> list[str]:
    """Its addresses, the preferred first. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class ReferenceFetcher:
    """resolve, is_allowed: of names and of addresses. transport: what a connection is made with."""

    def __init__(
        self,
        rules: ReferenceRules,
        *,
        resolve: Resolve = resolve_host,
        is_allowed: Callable[[str], bool] = is_public_address,
        transport: Callable[[], httpx.AsyncBaseTransport] | None = None,
    ) -> None:
        self._rules = rules
        self._resolve = resolve
        self._is_allowed = is_allowed
        self._transport = transport
        self._trust: ssl.SSLContext | None = None
        self._room = asyncio.Semaphore(MOST_FETCHES)

    async def fetch(self, url: str, field: str = "audio_url") -> bytes:
        """What is at an http or https URL. Raises Refused, which names the field."""
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S), self._room:
                return await self._follow(url, field)
        except TimeoutError:
            why = f"The recording did not arrive within {FETCH_TIMEOUT_S:g} s."
            raise refuse(400, "reference_timeout", f"Invalid '{field}': {why}", field) from None

    async def read_path(self, path: str, field: str = "audio_path") -> bytes:
        """A file inside the allowed folders. Raises Refused, which names the field."""
        try:
            return await asyncio.to_thread(read_inside, path, self._rules.folders, LARGEST_BYTES)
        except PathRefused as error:
            message = f"Invalid '{field}': {error.message}"
            raise refuse(400, error.code, message, field) from error

    async def _follow(self, text: str, field: str) -> bytes:
        if not self._rules.remote:
            raise _refused(
                field,
                "remote_references_off",
                "this server fetches nothing from the web; its operator can allow it "
                "(speech.remote_references). Send the recording itself.",
            )
        url = self._read_url(text, field)
        for _ in range(1 + MOST_REDIRECTS):
            found = await self._visit(url, field)
            if isinstance(found, bytes):
                return found
            try:
                target = str(url.join(found))
            except (httpx.InvalidURL, ValueError):
                target = ""
            url = self._read_url(target, field)
        raise _unreachable(field, f"it leads on more than {MOST_REDIRECTS} times")

    def _read_url(self, text: str, field: str) -> httpx.URL:
        """Every URL on the way, the first and those of redirects."""
        if len(text) > MAX_URL_CHARACTERS:
            raise _wrong(field, f"expected at most {MAX_URL_CHARACTERS} characters")
        try:
            url = httpx.URL(text)
            host = url.host  # it is decoded here, and may be no name
        except (httpx.InvalidURL, ValueError):
            raise _wrong(field, "it is no URL that can be read") from None
        if url.scheme not in ("http", "https") or not host:
            raise _wrong(field, "expected an http or https URL")
        if url.userinfo:
            raise _wrong(field, "it must hold no user name or password")
        if _port(url) not in self._rules.ports:
            allowed = ", ".join(map(str, self._rules.ports))
            raise _wrong(field, f"its port is not among those allowed ({allowed})")
        return url

    async def _visit(self, url: httpx.URL, field: str) -> bytes | str:
        """What is there, or where that is instead."""
        addresses = await self._addresses(url, field)
        async with self._client(await self._trusted()) as client:
            for address in addresses[:MOST_ADDRESSES]:
                request = client.build_request(
                    "GET",
                    url.copy_with(host=address, fragment=None),
                    headers=_HEADERS | {"Host": url.netloc.decode("ascii")},
                    extensions={"sni_hostname": url.raw_host.decode("ascii")},
                )
                try:
                    response = await client.send(request, stream=True)
                    try:
                        return await _take(response, field)
                    finally:
                        await response.aclose()
                except httpx.ConnectError:
                    continue
                except (
                    httpx.HTTPError,
                    httpx.InvalidURL,
                    httpx.StreamError,
                    UnicodeError,
                ) as error:
                    raise _unreachable(field, "its server broke off") from error
        raise _unreachable(field, "its server cannot be reached")

    async def _addresses(self, url: httpx.URL, field: str) -> list[str]:
        """One answer to whoever asks for a host that is private and for one that is not there."""
        try:
            found = await self._resolve(url.raw_host.decode("ascii"), _port(url))
        except (OSError, UnicodeError):
            found = []
        if not found or not all(map(self._is_allowed, found)):
            raise _refused(
                field,
                "reference_address_refused",
                "its host has no address on the public internet, where alone this server fetches "
                "recordings.",
            )
        return found

    def _client(self, trust: ssl.SSLContext) -> httpx.AsyncClient:
        """A fresh one for each visit: two names on one address share no connection."""
        return httpx.AsyncClient(
            transport=self._transport() if self._transport else None,
            verify=trust,
            trust_env=False,  # a proxy would resolve the name again
            follow_redirects=False,
            timeout=FETCH_TIMEOUT_S,
        )

    async def _trusted(self) -> ssl.SSLContext:
        """Made once, in a thread: it reads a hundred certificates."""
        if self._trust is None:
            self._trust = await asyncio.to_thread(httpx.create_ssl_context, trust_env=False)
        return self._trust


async def _take(response: httpx.Response, field: str) -> bytes | str:
    if response.status_code in _REDIRECTS and "location" in response.headers:
        return response.headers["location"]
    if response.status_code != 200:
        raise _unreachable(field, f"its server answers {response.status_code}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        # A few bytes may unfold to gigabytes; sound is not made smaller in this way.
        raise _unreachable(field, "its server compresses what it was asked to send as it is")
    announced = response.headers.get("content-length", "")
    data = bytearray()
    if not (announced.isdecimal() and int(announced) > LARGEST_BYTES):
        async for piece in response.aiter_raw():
            data += piece
            if len(data) > LARGEST_BYTES:
                break
        else:
            return bytes(data)
    why = f"what is there is larger than {LARGEST_BYTES // 2**20} MiB"
    raise _refused(field, "reference_too_large", f"{why}.")


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _wrong(field: str, why: str) -> Refused:
    return _refused(field, "invalid_url", f"{why}.")


def _unreachable(field: str, why: str) -> Refused:
    return _refused(field, "reference_unreachable", f"the recording cannot be fetched: {why}.")


def _refused(field: str, code: str, why: str) -> Refused:
    return refuse(400, code, f"Invalid '{field}': {why}", field)
