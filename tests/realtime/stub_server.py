"""An HTTP server in a thread that answers as a test says, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Send = Callable[[bytes], None]


@dataclass(slots=True)
class Stub:
    """announced: the length that the answer claims to have; None tells the true one."""

    status: int = 200
    content_type: str = "application/octet-stream"
    chunks: tuple[bytes, ...] = ()
    announced: int | None = None
    before_chunk: Callable[[int], None] = lambda _number: None
    url: str = ""
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        """Of the only request."""
        ((_, _, body),) = self.asked
        return body

    @property
    def headers(self) -> dict[str, str]:
        ((_, headers, _),) = self.asked
        return headers


@contextmanager
def stub_server(stub: Stub) -> Iterator[Stub]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            stub.asked.append((self.path, headers, self._read_body()))
            whole = sum(map(len, stub.chunks)) if stub.announced is None else stub.announced
            self.send_response(stub.status)
            self.send_header("Content-Type", stub.content_type)
            self.send_header("Content-Length", str(whole))
            self.end_headers()
            for number, chunk in enumerate(stub.chunks):
                stub.before_chunk(number)
                self.wfile.write(chunk)
                self.wfile.flush()
            self.close_connection = True

        def _read_body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers["Content-Length"]))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            return body

        def log_message(self, format: str, *args: object) -> None:
            """Not in the test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield stub
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
