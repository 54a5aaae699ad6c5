"""A publisher of one file, on loopback."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


class Publisher(ThreadingHTTPServer):
    """Serves one file. Each request takes the next of `answers`; when none is left, the file is served well."""

    ranges = True

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.content = content
        self.answers: list[Callable[[Any], None]] = []
        self.requests: list[dict[str, str]] = []
        self.over = Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/file.zip"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up in the median is part of these tests."""


class Answer(BaseHTTPRequestHandler):
    server: Publisher

    def log_message(self, *args: Any) -> None:
        """Silence."""

    def do_GET(self) -> None:
        self.server.requests.append({"path": self.path, **self.headers})
        if self.server.answers:
            self.server.answers.pop(0)(self)
        else:
            self.wfile.write(self.begin())

    def begin(self, length: int | None = None) -> bytes:
        """Send the headers of the complete file, or of the range asked for; the bytes that belong under them."""
        content, server, start = self.server.content, self.server, 0
        asked = self.headers.get("Range")
        if asked and server.ranges:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_error(416)
                return b""
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - start if length is None else length))
        self.end_headers()
        return content[start:]


@contextmanager
def serving(content: bytes) -> Iterator[Publisher]:
    """A publisher of this file while the block runs."""
    with Publisher(content) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()
