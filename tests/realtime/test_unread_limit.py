"""The system resets a connection that is not read later than whoever writes gives it up."""

from __future__ import annotations

import socket

import pytest

from realtime.commands.listening import bind
from realtime.http.outlet import SEND_TIMEOUT_S
from realtime.http.speech_socket.session import USUAL


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="a limit of Linux")
def test_a_slow_reader_is_told_before_the_system_resets_its_connection() -> None:
    with bind("127.0.0.1", 0) as listener:
        limit_s = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000
    assert limit_s > max(USUAL.unread_s + USUAL.late_s, SEND_TIMEOUT_S)
