"""A chat-completions server whose answers follow from what it is asked, for the server under test.

It runs in threads of the test's own process. What the user said last decides:
a tool is called when it is forced or the weather is asked for; `Count` counts for longer than any
test waits; `Fail` fails.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COUNT = " ".join(f"number {number}," for number in range(1, 41))  # more than ten seconds of speech
TOOL_ARGUMENTS = json.dumps({"city": "Paris"})
SUNNY = "It is sunny."


@contextmanager
def scripted_words() -> Iterator[str]:
    """Serves on loopback until the block ends; gives the base URL, up to and with /v1."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="scripted words")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def said_last(body: dict[str, Any]) -> str:
    users = [message for message in body["messages"] if message["role"] == "user"]
    return str(users[-1]["content"]) if users else ""


def deltas(body: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Pairs of a choice's delta and its finish_reason."""
    choice = body.get("tool_choice", "none")
    heard = said_last(body)
    is_after_tool = body["messages"][-1]["role"] == "tool"
    may_call = choice == "auto" and "weather" in heard and not is_after_tool
    if body.get("tools") and (may_call or choice not in ("none", "auto")):
        function = {"name": body["tools"][0]["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{"index": 0, "id": "call_of_the_model", "function": function}]}, None
        for half in (TOOL_ARGUMENTS[:8], TOOL_ARGUMENTS[8:]):
            yield {"tool_calls": [{"index": 0, "function": {"arguments": half}}]}, None
        yield {}, "tool_calls"
        return
    if is_after_tool:
        answer = SUNNY
    elif heard.startswith("Count"):
        answer = COUNT
    else:
        answer = f"You said: {heard}"
    words = answer.split(" ")
    limit = body.get("max_tokens", len(words))
    for number, word in enumerate(words[:limit]):
        yield {"content": f" {word}" if number else word}, None
    yield {}, "length" if limit < len(words) else "stop"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if said_last(body).startswith("Fail"):
            self.send_error(400, "told to fail")
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        try:
            for delta, reason in deltas(body):
                choice = {"index": 0, "delta": delta, "finish_reason": reason}
                self._write({"choices": [choice]})
            usage = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
            self._write({"choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # the reply was interrupted

    def _write(self, event: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: a test's output is the test's."""
