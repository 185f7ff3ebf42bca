"""A Messages endpoint on the loopback interface that plays a script instead of running a model."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Block = dict[str, Any]


def say(text: str) -> list[Block]:
    """Return a turn that only speaks."""
    return [{"type": "text", "text": text}]


def use(*calls: tuple[str, dict[str, Any]]) -> list[Block]:
    """Return a turn that calls tools: each is a tool's name and its input."""
    return [
        {"type": "tool_use", "id": f"toolu_{id(arguments)}_{number}", "name": name, "input": arguments}
        for number, (name, arguments) in enumerate(calls)
    ]


class ScriptedEndpoint:
    """Answers each request with the next turn of the script; keeps the requests.

    A request beyond the script gets an error that the SDK does not retry.
    """

    def __init__(self, *turns: Sequence[Block]) -> None:
        self.requests: list[dict[str, Any]] = []
        script = iter(turns)
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                requests.append(json.loads(body))
                turn = next(script, None)
                status, reply = (400, {"type": "error"}) if turn is None else (200, message(turn))
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def tool_results(self) -> list[Block]:
        """Return every tool result that was sent, in order.

        Each request ends with the results of the turn before, whether or not it repeats the history.
        """
        newest = [request["messages"][-1]["content"] for request in self.requests]
        blocks = [block for content in newest if isinstance(content, list) for block in content]
        return [block for block in blocks if block["type"] == "tool_result"]

    def __enter__(self) -> ScriptedEndpoint:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def message(content: Sequence[Block]) -> dict[str, Any]:
    """Return an assistant message of the Messages API."""
    calls = any(block["type"] == "tool_use" for block in content)
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": list(content),
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
