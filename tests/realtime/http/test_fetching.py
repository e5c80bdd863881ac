"""Recordings from the web: only from public addresses, within bounds, and never by surprise."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import httpx
import pytest
import trustme

from pipelines.fakes.virtual_time import run_virtual
from realtime.http.reception import Refused
from realtime.http.references import fetching
from realtime.http.references.fetching import ReferenceFetcher, ReferenceRules

ON = ReferenceRules(remote=True)
PUBLIC, OTHER = "93.184.216.34", "2606:4700::1111"
HOSTS = {"voices.test": [PUBLIC], "other.test": [OTHER]}
Answer = Callable[[httpx.Request], httpx.Response]


class Names:
    """A name service. Each of a host's answers is a list of addresses; the last one stays."""

    def __init__(self, hosts: Mapping[str, list[str] | list[list[str]]]) -> None:
        self._hosts = {
            name: [list(answers)] if isinstance(answers[0], str) else list(answers)
            for name, answers in hosts.items()
        }
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append((host, port))
        if host not in self._hosts:
            raise OSError("unknown name")
        answers: list[Any] = self._hosts[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Web:
    """Everything that can be reached; `visits` are (scheme, address, port, Host header, SNI)."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.visits: list[tuple[str, str, int | None, str, str]] = []
        self.headers: list[httpx.Headers] = []

    def __call__(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._handle)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        url, sni = request.url, request.extensions["sni_hostname"]
        self.visits.append((url.scheme, url.host, url.port, request.headers["host"], sni))
        self.headers.append(request.headers)
        return self._answer(request)


def sound(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, content=pieces(b"so", b"und"))


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


def fetch(
    url: str,
    answer: Answer = sound,
    names: Names | None = None,
    rules: ReferenceRules = ON,
) -> tuple[bytes, Web]:
    web = Web(answer)
    fetcher = ReferenceFetcher(rules, resolve=names or Names(HOSTS), transport=web)
    return run_virtual(fetcher.fetch(url, "references[0].audio_url")), web


def refusal(*args: Any, **options: Any) -> tuple[str, str]:
    """The code and the message of a refused fetch."""
    with pytest.raises(Refused) as caught:
        fetch(*args, **options)
    response = caught.value.response
    error = json.loads(bytes(response.body))["error"]
    assert response.status_code == 400
    assert error["param"] == "references[0].audio_url"
    assert error["message"].startswith("Invalid 'references[0].audio_url': ")
    return error["code"], error["message"]


def redirect(*targets: str) -> Answer:
    """Leads to one target after the other, then to sound."""
    left = list(targets)

    def answer(request: httpx.Request) -> httpx.Response:
        if left:
            return httpx.Response(302, headers={"Location": left.pop(0)})
        return sound(request)

    return answer


def test_the_very_address_that_was_resolved_is_visited() -> None:
    names = Names(HOSTS)
    data, web = fetch("https://voices.test/a.wav?x=1#y", names=names)
    assert data == b"sound"
    assert web.visits == [("https", PUBLIC, None, "voices.test", "voices.test")]
    assert names.asked == [("voices.test", 443)]
    assert web.headers[0]["accept-encoding"] == "identity"
    assert not {"authorization", "cookie", "referer"} & set(web.headers[0])


def test_nothing_is_fetched_unless_it_is_allowed() -> None:
    names = Names(HOSTS)
    code, message = refusal("http://voices.test/", names=names, rules=ReferenceRules())
    assert code == "remote_references_off" and "speech.remote_references" in message
    assert names.asked == []


ADDRESSES = [
    "127.0.0.1",
    "10.1.2.3",
    "172.20.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "0.0.0.0",
    "::1",
    "::ffff:10.0.0.1",
    "fd00:ec2::254",
    "fe80::1%2",
    "64:ff9b::a00:1",
    "2002:a00:1::1",
    "224.0.0.1",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_name_that_leads_to_a_private_address_is_refused(address: str) -> None:
    """In the words for a name that does not exist: nobody learns what there is inside."""
    unknown = refusal("http://nobody.test/")
    for found in ([address], [PUBLIC, address], [address, PUBLIC]):
        names = Names({"evil.test": found})
        assert refusal("http://evil.test/", names=names) == unknown
    assert unknown[0] == "reference_address_refused"


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_redirect_to_a_private_address_is_refused(address: str) -> None:
    names = Names({**HOSTS, "evil.test": [address]})
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.host)
        return httpx.Response(307, headers={"Location": "http://evil.test/latest/meta-data"})

    assert refusal("http://voices.test/", answer, names=names)[0] == "reference_address_refused"
    assert seen == [PUBLIC]


LITERALS = [
    "127.0.0.1",
    "[::1]",
    "[::ffff:10.0.0.1]",
    "2130706433",
    "0x7f.1",
    "127.1",
    "017700000001",
]


@pytest.mark.parametrize("host", [*LITERALS, "localhost", "LOCALHOST.", "0"])
@pytest.mark.parametrize("is_redirect", [False, True])
def test_addresses_in_every_spelling_are_refused(host: str, is_redirect: bool) -> None:
    """With the system's own resolver, which understands all of these."""
    web = Web(redirect(f"http://{host}/"))

    async def resolve(name: str, port: int) -> list[str]:
        return [PUBLIC] if name == "voices.test" else await fetching.resolve_host(name, port)

    fetcher = ReferenceFetcher(ON, resolve=resolve, transport=web)
    with pytest.raises(Refused) as caught:
        asyncio.run(fetcher.fetch("http://voices.test/" if is_redirect else f"http://{host}/"))
    error = json.loads(bytes(caught.value.response.body))["error"]
    assert error["code"] in ("reference_address_refused", "invalid_url")
    assert len(web.visits) == int(is_redirect)


def test_a_name_that_changes_its_mind_is_asked_once_per_visit() -> None:
    """DNS rebinding: public when it is checked, private when it is visited."""
    names = Names({"rebind.test": [[PUBLIC], ["127.0.0.1"]]})
    data, web = fetch("http://rebind.test/", names=names)
    assert data == b"sound"
    assert [visit[1] for visit in web.visits] == [PUBLIC] and len(names.asked) == 1
    names = Names({"rebind.test": [[PUBLIC], ["127.0.0.1"]]})
    again = redirect("http://rebind.test/again")
    assert refusal("http://rebind.test/", again, names=names)[0] == "reference_address_refused"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://voices.test/", "http or https"),
        ("file:///etc/passwd", "http or https"),
        ("gopher://voices.test/", "http or https"),
        ("voices.test/a.wav", "http or https"),
        ("", "http or https"),
        ("http://", "http or https"),
        ("http://anna:secret@voices.test/", "user name or password"),
        ("http://anna@voices.test/", "user name or password"),
        ("http://voices.test:22/", "port"),
        ("http://voices.test:8080/", "port"),
        ("http://voices.test:99999/", "port"),
        ("http://[::1/", "no URL"),
        ("http://xn--/", "no URL"),
        ("http://voices.test/\n", "no URL"),
        ("http://voices.test/" + "a" * 3000, "at most 2048 characters"),
    ],
)
@pytest.mark.parametrize("is_redirect", [False, True])
def test_a_url_that_is_not_for_the_web_is_refused(url: str, why: str, is_redirect: bool) -> None:
    if not is_redirect:
        code, message = refusal(url)
        assert code == "invalid_url" and why in message
    elif url.partition("://")[2]:  # others are relative
        code, _ = refusal("http://voices.test/", redirect(url))
        assert code == ("reference_unreachable" if why == "no URL" else "invalid_url")


def test_other_ports_can_be_allowed() -> None:
    rules = ReferenceRules(remote=True, ports=(8080,))
    _, web = fetch("http://voices.test:8080/", rules=rules)
    assert web.visits == [("http", PUBLIC, 8080, "voices.test:8080", "voices.test")]
    assert refusal("http://voices.test/", rules=rules)[0] == "invalid_url"


def test_redirects_are_followed_three_times() -> None:
    answer = redirect("/b", "https://other.test/c", "//voices.test/d")
    data, web = fetch("http://voices.test/a", answer)
    assert data == b"sound"
    assert web.visits == [
        ("http", PUBLIC, None, "voices.test", "voices.test"),
        ("http", PUBLIC, None, "voices.test", "voices.test"),
        ("https", OTHER, None, "other.test", "other.test"),
        ("https", PUBLIC, None, "voices.test", "voices.test"),
    ]
    code, message = refusal("http://voices.test/a", redirect(*["/b"] * 4))
    assert code == "reference_unreachable" and "more than 3 times" in message


@pytest.mark.parametrize("status", [201, 204, 206, 304, 401, 404, 500])
def test_an_answer_that_is_no_file_is_told(status: int) -> None:
    code, message = refusal("http://voices.test/", lambda _: httpx.Response(status, content=b"x"))
    assert code == "reference_unreachable" and str(status) in message


def test_a_body_without_end_is_cut() -> None:
    taken = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield bytes(2**20)

    assert refusal("http://voices.test/", lambda _: httpx.Response(200, content=body()))[0] == (
        "reference_too_large"
    )
    assert taken == 25


def test_an_announced_gigabyte_is_not_read() -> None:
    async def body() -> AsyncIterator[bytes]:
        raise AssertionError("read")
        yield b""

    headers = {"Content-Length": str(2**30)}
    answer = httpx.Response(200, headers=headers, content=body())
    assert refusal("http://voices.test/", lambda _: answer)[0] == "reference_too_large"


def test_what_unfolds_is_not_unfolded() -> None:
    bomb = gzip.compress(bytes(2**26))
    headers = {"Content-Encoding": "gzip"}
    answer = httpx.Response(200, headers=headers, content=pieces(bomb))
    assert refusal("http://voices.test/", lambda _: answer)[0] == "reference_unreachable"


def test_a_slow_server_is_given_ten_seconds_in_all() -> None:
    async def body() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(1)
            yield b"a"

    code, message = refusal("http://voices.test/", lambda _: httpx.Response(200, content=body()))
    assert code == "reference_timeout" and "10 s" in message


def test_a_name_service_that_never_answers_too() -> None:
    class Silent(Names):
        async def __call__(self, host: str, port: int) -> list[str]:
            await asyncio.Event().wait()
            return []

    assert refusal("http://voices.test/", names=Silent({}))[0] == "reference_timeout"


def test_the_next_address_serves_where_one_does_not_answer() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == OTHER:
            raise httpx.ConnectError("unreachable")
        return sound(request)

    data, web = fetch("http://two.test/", answer, names=Names({"two.test": [OTHER, PUBLIC]}))
    assert data == b"sound" and [visit[1] for visit in web.visits] == [OTHER, PUBLIC]

    def fail(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("reset")

    assert refusal("http://voices.test/", fail)[0] == "reference_unreachable"


@pytest.mark.parametrize("is_own_name", [True, False])
def test_over_a_real_socket_the_certificate_is_that_of_the_name(is_own_name: bool) -> None:
    authority = trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    name = "voices.test" if is_own_name else "127.0.0.1"
    authority.issue_cert(name).configure_cert(served)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsound")
        await writer.drain()
        writer.close()

    async def run() -> bytes:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=served)
        async with server:
            port = server.sockets[0].getsockname()[1]
            fetcher = ReferenceFetcher(
                ReferenceRules(remote=True, ports=(port,)),
                resolve=Names({"voices.test": ["127.0.0.1"]}),
                is_allowed=lambda address: address == "127.0.0.1",
            )
            fetcher._trust = trust
            return await fetcher.fetch(f"https://voices.test:{port}/a.wav")

    if is_own_name:
        assert asyncio.run(run()) == b"sound"
        assert asked[0].startswith(b"GET /a.wav HTTP/1.1\r\n") and b"voices.test:" in asked[0]
    else:
        with pytest.raises(Refused):
            asyncio.run(run())
        assert asked == []
