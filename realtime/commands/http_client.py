"""The HTTP side of a running server, for commands: an address, a key, and errors in plain words."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import httpx

from realtime.commands.addresses import http_root
from realtime.commands.errors import USAGE, CommandError

CONNECT_TIMEOUT_S = 10.0
WRITE_TIMEOUT_S = 60.0  # for a server that reads an upload no further
MAX_ERROR_BYTES = 64 * 1024  # of an answer that is no success
MAX_SHOWN_CHARACTERS = 200  # of one that is not this server's
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


class Server:
    """One server, as a command speaks to it."""

    def __init__(self, url: str, key: str | None, client: httpx.Client) -> None:
        self._url = url
        self._key = key
        self._client = client

    @contextmanager
    def post(self, path: str, **content: object) -> Iterator[httpx.Response]:
        """A streamed answer of success. Raises CommandError for any other, and for none.

        content: as `httpx.Client.stream` takes it.
        """
        try:
            with self._client.stream("POST", self._url + path, **content) as answer:  # type: ignore[arg-type]
                if answer.status_code != HTTPStatus.OK:
                    raise self._refusal(answer)
                yield answer
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise self._absent(error) from error
        except httpx.TimeoutException as error:
            raise CommandError(f"{self._url} did not answer in time ({_kind(error)})") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise CommandError(
                f"{self._url} broke the connection off: {str(error) or _kind(error)}"
            ) from error

    def _absent(self, error: httpx.TransportError) -> CommandError:
        said = str(error) or "timed out"
        if "CERTIFICATE_VERIFY_FAILED" in said:
            return CommandError(
                f"the certificate of {self._url} is not trusted ({said}): name the file of the "
                "authority that signed it, or its own, in $SSL_CERT_FILE"
            )
        if "SSL" in said:
            return CommandError(f"{self._url} does not speak TLS ({said}); is it http://?")
        return CommandError(
            f"no server answers at {self._url} ({said}); start one with: make serve"
        )

    def _refusal(self, answer: httpx.Response) -> CommandError:
        status = answer.status_code
        if status == HTTPStatus.UNAUTHORIZED:
            if self._key is None:
                return CommandError(
                    f"{self._url} wants a key; give it with --key or in $PARLEY_KEY"
                )
            return CommandError(
                f"{self._url} does not accept this key; give another with --key or in $PARLEY_KEY"
            )
        return CommandError(f"{self._url} refused this ({status}): {_message_of(answer)}")


@contextmanager
def open_server(url: str, key: str | None, *, patience_s: float) -> Iterator[Server]:
    """url: as `http_root` takes it. patience_s: for the next bytes of an answer.

    Raises CommandError where it is no address.
    """
    root, host = http_root(url)
    if key is not None and not key.isascii():
        raise CommandError("a key has ASCII characters alone: see --key and $PARLEY_KEY", USAGE)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line per request, between the answers
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = httpx.Timeout(patience_s, connect=CONNECT_TIMEOUT_S, write=WRITE_TIMEOUT_S)
    # A proxy has no business between this machine and itself.
    with httpx.Client(
        headers=headers, timeout=timeout, trust_env=host not in LOCAL_HOSTS
    ) as client:
        yield Server(root, key, client)


def _message_of(answer: httpx.Response) -> str:
    """What the server says, or whoever answered in its place."""
    body = b""
    for chunk in answer.iter_bytes():
        body += chunk
        if len(body) > MAX_ERROR_BYTES:
            break
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        said = " ".join(body.decode(errors="replace").split())[:MAX_SHOWN_CHARACTERS]
        return said or answer.reason_phrase


def _kind(error: Exception) -> str:
    return type(error).__name__
