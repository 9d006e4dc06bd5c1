"""llmock, a server of other people that speaks vendors' APIs, breaks on demand and grades its client (PyPI)."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

START_SECONDS = 60.0


class LLMock:
    """The running server. ``url`` has no path."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(base_url=f"{url}/_llmock", timeout=30)

    def play(self, *behaviors: dict[str, Any]) -> None:
        """Forget everything, and let the next requests meet these behaviors."""
        self._http.post("/reset").raise_for_status()
        self._http.post("/scenario", json={"behaviors": behaviors}).raise_for_status()

    def verdict(self) -> dict[str, Any]:
        """Return what the server says of its client since the last ``play``."""
        return dict(self._http.get("/verdict").raise_for_status().json())

    def waiting(self) -> list[Any]:
        """Return the behaviors that no request has met."""
        return list(self._http.get("/scenario").raise_for_status().json()["pending"])

    def close(self) -> None:
        self._http.close()


@contextmanager
def llmock_server() -> Iterator[LLMock]:
    """Run the server within the context."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "uvicorn", "llmock.main:app", "--port", str(port), "--log-level", "error"]
    environment = {
        **os.environ,
        "LLMOCK_STREAM_CHUNK_DELAY_MS": "10",
    }  # so that it notices a client that leaves
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment) as process:
        server = LLMock(f"http://127.0.0.1:{port}")
        try:
            _wait(process, server)
            yield server
        finally:
            server.close()
            process.terminate()


def _wait(process: "subprocess.Popen[bytes]", server: LLMock) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            server.verdict()
            return
        except httpx.TransportError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("llmock did not start; its error is above") from None
            time.sleep(0.05)
