"""Commands take a server's address in either form."""

from __future__ import annotations

import pytest

from realtime.commands.addresses import http_root, realtime_url


@pytest.mark.parametrize(
    ("url", "root", "conversations"),
    [
        ("http://h:1", "http://h:1", "ws://h:1/v1/realtime"),
        ("https://h/v1/", "https://h", "wss://h/v1/realtime"),
        ("ws://h:1", "http://h:1", "ws://h:1/v1/realtime"),
        ("wss://h/v1/realtime?model=m", "https://h", "wss://h/v1/realtime?model=m"),
        ("https://h/?model=m", "https://h", "wss://h/v1/realtime?model=m"),
    ],
)
def test_either_form_means_the_same_server(url: str, root: str, conversations: str) -> None:
    assert http_root(url) == (root, "h")
    assert realtime_url(url) == (conversations, "h")


def test_a_socket_behind_another_path_stays_there() -> None:
    assert realtime_url("wss://h/parley/v1/realtime") == ("wss://h/parley/v1/realtime", "h")
