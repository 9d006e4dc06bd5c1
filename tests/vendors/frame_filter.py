"""A proxy that takes the frames out of aimock's ConverseStream which Bedrock does not send, and botocore cannot read.

aimock begins a block of text with an empty ``contentBlockStart``. Bedrock begins only blocks of tools so.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
from botocore.eventstream import EventStreamBuffer

from trunkline.testing.vendor_apis.event_stream import CONTENT_TYPE, encode_frame


@contextmanager
def without_empty_starts(url: str) -> Iterator[str]:
    """Run the proxy before the server with this address, and yield the proxy's address."""

    class Filter(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            kept = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            answer = httpx.post(f"{url}{self.path}", content=content, headers=kept, timeout=60)
            kind = answer.headers.get("content-type", "")
            body = _filtered(answer.content) if kind == CONTENT_TYPE else answer.content
            self.send_response(answer.status_code)
            for name in ("content-type", "retry-after"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Filter) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def _filtered(content: bytes) -> bytes:
    buffer = EventStreamBuffer()
    buffer.add_data(content)
    frames = (frame.to_response_dict() for frame in buffer)
    return b"".join(encode_frame(one["headers"], one["body"]) for one in frames if not _is_empty_start(one))


def _is_empty_start(frame: dict[str, Any]) -> bool:
    if frame["headers"].get(":event-type") != "contentBlockStart":
        return False
    return json.loads(frame["body"]).get("start") == {}
