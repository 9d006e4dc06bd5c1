"""``web_crawler``: a few pages of one site, as far as the site and the bounds let it."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline import ToolContext, ToolError
from trunkline_web import crawler
from trunkline_web.robots import parse_robots
from trunkline_web.settings import WebSettings

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawler, "PAUSE", 0.0)


async def crawl(site: Any, context: ToolContext, path: str = "/", **arguments: Any) -> str:
    tool = crawler.crawler_tool(WebSettings(allow=(site.allow,), timeout=60.0))
    return await tool(context, {"url": site.origin + path, **arguments})


def linked(*links: str, text: str = "words") -> str:
    """A page that leads somewhere."""
    return f"<p>{text}</p>" + "".join(f'<a href="{link}">x</a>' for link in links)


async def test_pages_are_read_along_their_links(site: Any, context: ToolContext, make_page: Any) -> None:
    """The nearest first, each once, only pages, only of this site, and only so deep and so many."""
    site.pages |= {
        "/": make_page(
            linked(
                "/a", "b#x", "/a#y", "https://evil.example/", "mailto:a@b", "/p.png", "/", "//127.0.0.1:1/"
            )
        ),
        "/a": make_page("text of a", "text/plain"),
        "/b": make_page(linked("/c", text="text of b")),
        "/c": make_page("text of c", "text/plain"),
    }
    near = await crawl(site, context)
    assert site.paths == ["/robots.txt", "/", "/a", "/b"] and "[3 pages were read.]" in near
    assert "text of a" in near and "text of b" in near and near.count("<context") == 1
    assert "text of c" in await crawl(site, context, max_depth=2)
    site.asked.clear()
    assert "[2 pages were read.]" in await crawl(site, context, max_pages=2, max_depth=3)
    assert "[1 page was read.]" in await crawl(site, context, max_depth=0)
    assert site.paths == ["/robots.txt", "/", "/a", "/robots.txt", "/"]


async def test_robots_txt_is_respected(site: Any, context: ToolContext, make_page: Any) -> None:
    """Pages that it names are not asked for; a first one is a refusal; a site that cannot say is left alone."""
    site.pages |= {
        "/robots.txt": make_page(
            "User-agent: Trunkline\nDisallow: /private/\n\nUser-agent: *\nAllow: /", "text/plain"
        ),
        "/": make_page(linked("/private/x", "/open")),
        "/open": make_page("open", "text/plain"),
        "/private/x": make_page("secret", "text/plain"),
    }
    text = await crawl(site, context)
    assert "secret" not in text and ": disallowed by robots.txt." in text and "/private/x" not in site.paths
    with pytest.raises(ToolError, match="asks programs not to crawl"):
        await crawl(site, context, "/private/x")
    site.pages["/robots.txt"] = make_page("", status="503 Busy")
    with pytest.raises(ToolError, match="is not available now"):
        await crawl(site, context)
    site.pages["/robots.txt"] = make_page("", status="302 Found", Location="https://evil.example/robots.txt")
    assert "open" in await crawl(site, context)


async def test_much_text_is_kept_with_the_conversation(site: Any, context: Any, make_page: Any) -> None:
    """Beyond about 8000 tokens the pages are found by search_in_documents, and their beginnings are shown (MN-F16)."""
    long = "".join(f"line {number} of a long page\n" for number in range(1500))
    site.pages |= {"/": make_page(linked("/long")), "/long": make_page(long, "text/plain")}
    text = await crawl(site, context)
    assert len(text) < 3000 and "search_in_documents searches" in text and "line 1499" not in text
    (name,) = [name for name in context.documents.kept if "long" in name]
    assert name == "web/127.0.0.1/long.md" and "line 1499" in context.documents.kept[name]


async def test_a_failing_page_does_not_stop_the_crawl(
    site: Any, context: ToolContext, make_page: Any
) -> None:
    """They are named with why; the first one's failure is the call's."""
    site.pages |= {
        "/": make_page(linked("/gone", "/away", "/photo", "/good")),
        "/away": make_page("", status="302 Found", Location="https://evil.example/"),
        "/photo": make_page("xx", "image/png"),
        "/good": make_page("good", "text/plain"),
    }
    text = await crawl(site, context)
    assert "good" in text and "/gone answers 404" in text and "another host" in text and "image/png" in text
    with pytest.raises(ToolError, match="404"):
        await crawl(site, context, "/gone")


async def test_an_endless_site_is_crawled_up_to_the_limit(
    site: Any, context: ToolContext, make_page: Any, monkeypatch: Any
) -> None:
    """A site that makes pages without end, by number of requests, by bytes and by time."""

    async def further(stream: Any) -> None:
        n = len(site.asked)
        await stream.send(make_page(linked(f"/{n}a", f"/{n}b", f"/{n}c")))

    async def broken(stream: Any) -> None:
        await stream.send(make_page("", status="500 Oops"))

    class Labyrinth(dict[str, Any]):
        def get(self, path: str, default: Any = None) -> Any:
            return (
                make_page("", status="404 No")
                if path == "/robots.txt"
                else self.way
                if path != "/"
                else further
            )

    site.pages = Labyrinth()
    site.pages.way = further
    assert "[5 pages were read.]" in await crawl(site, context, max_pages=5, max_depth=3)
    site.pages.way = broken
    site.asked.clear()
    await crawl(site, context, max_pages=3, max_depth=3)
    assert len(site.asked) <= 7
    monkeypatch.setattr(crawler, "MOST_BYTES", 9)
    assert "[1 page was read.]" in await crawl(site, context)
    monkeypatch.setattr(crawler, "CRAWL_SECONDS", 0.0)
    with pytest.raises(ToolError, match="within the time"):
        await crawl(site, context)


# robots.txt -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "target", "allowed"),
    [
        ("", "/x", True),
        ("Disallow: /", "/x", True),
        ("User-agent: *\nDisallow: /", "/x", False),
        ("user-AGENT: *\ndisallow:", "/x", True),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),
        ("User-agent: *\nDisallow: /a\nAllow: /a", "/a", True),
        ("User-agent: other\nDisallow: /", "/x", True),
        ("User-agent: trunkline/9\nDisallow: /\n\nUser-agent: *\nAllow: /", "/x", False),
        ("User-agent: *\nDisallow: /\n\nUser-agent: Trunkline\nDisallow: /y", "/x", True),
        ("User-agent: a\nUser-agent: Trunkline\nDisallow: /x # why", "/x", False),
        ("User-agent: Trunkline\nDisallow: /x\n\nUser-agent: trunkline\nDisallow: /y", "/y", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf?x", True),
        ("User-agent: *\nDisallow: /a*b*c", "/axxbyyc/", False),
        ("User-agent: *\nDisallow: /a*b*c", "/acb", True),
        ("User-agent: *\nDisallow: /a$", "/ab", True),
        ("User-agent: *\nDisallow: *?sort=", "/list?sort=1", False),
        ("User-agent: *\nDisallow: /b", "//a/b", True),
        ("User-agent: *\nDisallow: //a/", "//a/b", False),
        ("User-agent: *\nDisallow: /", "//[", False),
        ("\ufeffnonsense\n: :\nUser-agent\nUser-agent: *\nDisallow: /x", "/x", False),
    ],
)
def test_robots_txt_is_read_by_its_rfc(text: str, target: str, allowed: bool) -> None:
    """Groups by name, the longest pattern, wildcards and ends (RFC 9309)."""
    assert parse_robots(text, "Trunkline/0.1").is_allowed(target) is allowed


def test_a_crawl_delay_is_respected_up_to_a_limit() -> None:
    """A day between two pages is not."""
    assert parse_robots("User-agent: *\nCrawl-delay: 1.5", "Trunkline").delay == 1.5
    assert parse_robots("User-agent: *\nCrawl-delay: 86400", "Trunkline").delay == 5.0
    assert parse_robots("User-agent: *\nCrawl-delay: nan", "Trunkline").delay == 0.0


@given(st.text(max_size=300), st.text(max_size=50))
def test_any_robots_txt_can_be_read(text: str, target: str) -> None:
    """A stranger's file breaks nothing."""
    assert isinstance(parse_robots(f"User-agent: *\n{text}", "Trunkline").is_allowed(target), bool)


def test_patterns_cost_no_more_than_their_length() -> None:
    """A pattern that makes a backtracking matcher take exponential time is matched at once."""
    rules = "User-agent: *\nDisallow: /" + "*a" * 2000 + "$"
    began = time.monotonic()
    assert parse_robots(rules, "Trunkline").is_allowed("/" + "a" * 1999 + "b")
    assert time.monotonic() - began < 5


def test_blank_lines_cost_no_more_than_their_number() -> None:
    """The largest permitted file of blank lines is parsed at once: each blank line is scanned once."""
    began = time.monotonic()
    assert parse_robots(" \n" * 250_000, "Trunkline").is_allowed("/")
    assert time.monotonic() - began < 5
