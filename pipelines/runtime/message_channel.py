"""One end of the line between a server and a worker, on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import zmq

from pipelines.runtime.message_codec import STAGE_CODEC, MessageError

BATCH_MESSAGES = 64  # read in one go; then others on the loop have their turn


class Channel:
    """Reads a socket and hands each message to `on_message`; `send` never waits.

    The socket's own limits are off: what may be on its way is bounded by the windows of inputs
    and outputs, and an abort must never wait behind a full queue.

    on_broken: called once, with the reason, when a message cannot be read; nothing is read after.
    """

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        on_message: Callable[[object], None],
        on_broken: Callable[[Exception], None],
    ) -> None:
        self._socket = socket
        self._on_message = on_message
        self._on_broken = on_broken
        self._open = True
        self._broken = False
        self._loop = asyncio.get_running_loop()
        self._descriptor = cast("int", socket.getsockopt(zmq.FD))
        self._loop.add_reader(self._descriptor, self._receive)
        self._look_again()

    def send(self, message: object) -> None:
        """Raises MessageError if the message cannot be sent as it is. Does nothing when closed."""
        frames = STAGE_CODEC.encode(message)
        if not self._open:
            return
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:
            return  # the other side is gone, which whoever watches its process will tell
        self._look_again()

    def close(self) -> None:
        """Idempotent. What was sent just before may get lost."""
        if self._open:
            self._open = False
            if not self._broken:
                self._loop.remove_reader(self._descriptor)
            self._socket.close(linger=0)

    def _look_again(self) -> None:
        # The descriptor tells of a change once, and any other call on the socket may take the
        # news from it: so whoever calls looks whether there is something to read.
        if (
            self._open
            and not self._broken
            and cast("int", self._socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN
        ):
            self._loop.call_soon(self._receive)

    def _receive(self) -> None:
        try:
            for _ in range(BATCH_MESSAGES):
                if not self._open or self._broken or not self._receive_one():
                    return
        finally:
            # Also when a handler raises: what came behind its message waits to be read.
            self._look_again()

    def _receive_one(self) -> bool:
        """False: there is nothing to read."""
        try:
            frames = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
        except zmq.Again:
            return False
        try:
            message = STAGE_CODEC.decode([frame.buffer for frame in frames])
        except MessageError as error:
            self._broken = True
            self._loop.remove_reader(self._descriptor)
            self._on_broken(error)
            return False
        self._on_message(message)
        return True


def connected(socket: zmq.Socket[bytes]) -> zmq.Socket[bytes]:
    """The socket with the options that both ends have."""
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.setsockopt(zmq.LINGER, 0)
    return socket
