"""Each tool of the web keeps the contract of tools, against a site in a thread of its own."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from trunkline import Tool, ToolContext
from trunkline.testing.contexts import tool_context
from trunkline.testing.tool_suite import ToolSuite
from trunkline_web import crawler, fetch_tool, search_tool
from trunkline_web.settings import WebSettings


class _Site(BaseHTTPRequestHandler):
    """Sends the same page to every client."""

    def do_GET(self) -> None:
        body = b'{"results": [{"url": "https://a.example/", "title": "A", "content": "words"}]}'
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None: ...


class _Suite(ToolSuite):
    port: ClassVar[int]

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _serving(cls) -> Iterator[None]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        cls.port = server.server_address[1]
        yield
        server.shutdown()
        thread.join()
        server.server_close()

    def settings(self) -> WebSettings:
        return WebSettings(allow=(f"127.0.0.1:{self.port}",), searxng_url=f"http://127.0.0.1:{self.port}")

    def context(self, workspace: Path) -> ToolContext:
        return tool_context(workspace)


class TestWebSearch(_Suite):
    def tool(self) -> Tool:
        return search_tool.search_tool(self.settings())

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"query": "words", "count": 3, "search_lang": "en"}


class TestFetchWebpage(_Suite):
    def tool(self) -> Tool:
        return fetch_tool.fetch_tool(self.settings())

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"url": f"http://127.0.0.1:{self.port}/", "offset": 0, "links": True}


class TestWebCrawler(_Suite):
    def tool(self) -> Tool:
        return crawler.crawler_tool(self.settings())

    def arguments(self, workspace: Path) -> dict[str, Any]:
        return {"url": f"http://127.0.0.1:{self.port}/", "max_pages": 1, "max_depth": 0}
