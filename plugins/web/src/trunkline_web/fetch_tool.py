"""``fetch_webpage``: one page as text."""

from typing import Annotated

from msgspec import Meta

from trunkline import Tool, ToolContext, ToolError, tool
from trunkline.api.egress import parse_url
from trunkline.api.text import wrap_context
from trunkline.api.tool import ToolErrorKind
from trunkline_web.fetcher import HttpResponse, PageFetcher
from trunkline_web.page import PageText, read_page
from trunkline_web.settings import WebSettings

SHOWN = 8_000
"""Characters of a page that are shown at once."""

MOST_LINKS = 100
TIMEOUT = 180.0

Offset = Annotated[int, Meta(ge=0)]
Url = Annotated[str, Meta(min_length=1, max_length=4096)]


def page_fetcher(settings: WebSettings) -> PageFetcher:
    """Return the fetcher for pages that agents ask for."""
    return PageFetcher(settings.url_guard(), seconds=settings.timeout, user_agent=settings.user_agent)


def fetch_tool(settings: WebSettings) -> Tool:
    """The tool with these settings."""
    fetcher = page_fetcher(settings)

    @tool(
        effect="read", network=("url",), unbound_params=("offset", "links"), timeout=TIMEOUT, always_send=True
    )
    async def fetch_webpage(context: ToolContext, url: Url, offset: Offset = 0, links: bool = False) -> str:
        """Get a web page, or a PDF or text file of the web, as text, 8000 characters at a time.

        Args:
            url: The whole address, such as https://example.com/page.
            offset: Characters to skip.
            links: List the page's links too.
        """
        answer = await fetcher.get(parse_url(url))
        raise_for_status(answer)
        return format_page(await read_page(answer, context), offset, links)

    return fetch_webpage


_STATUS_KINDS: dict[int, ToolErrorKind] = {
    404: "not_found", 408: "timeout", 410: "not_found", 429: "rate_limited", 503: "unavailable", 504: "timeout",
}  # fmt: skip


def raise_for_status(answer: HttpResponse) -> None:
    """Raises ToolError for an answer that is no page."""
    if answer.status == 200 or (200 < answer.status < 300 and answer.body):
        return
    again = answer.headers.get("retry-after", "")
    when = f" It asks for a pause of {int(again)} seconds." if again.isdecimal() and len(again) < 7 else ""
    why = _STATUS_TEXTS.get(answer.status, "")
    kind = _STATUS_KINDS.get(answer.status, "upstream_error")
    raise ToolError(f"{answer.address.url[:500]} answers {answer.status}{why}.{when}", kind=kind)


_STATUS_TEXTS = {
    204: ": it has no content",
    401: ": it requires a sign-in, which is not supported here",
    403: ": it does not allow access to this page",
    404: ": there is no such page",
    410: ": the page is gone",
    429: ": it received too many requests",
    451: ": it is not allowed to show this page",
    500: ": the server failed; try again later",
    502: ": the server failed; try again later",
    503: ": the server is unavailable; try again later",
    504: ": the server failed; try again later",
}


def format_page(page: PageText, offset: int, links: bool) -> str:
    """A part of a page for the model: whose words it is, marked as data, and where to read on."""
    part = page.text[offset : offset + SHOWN]
    if offset and not part:
        return f"The page has no more than {len(page.text)} characters."
    head = [page.title, page.address.url] if page.title else [page.address.url]
    body = "\n".join([*head, "", part])
    if links:
        listed = page.links[:MOST_LINKS]
        body += "\n\nLinks:\n" + ("\n".join(listed) if listed else "(none)")
    return wrap_context(f"web {page.address.host}", body) + _cut_note(page, offset, offset + len(part))


def _cut_note(page: PageText, start: int, end: int) -> str:
    if end < len(page.text):
        return f"\n[Cut here: characters {start} to {end} of {len(page.text)}. Read on with offset={end}.]"
    if page.cut:
        return "\n[The page is longer than is ever read; this is the end of what was read of it.]"
    return ""
