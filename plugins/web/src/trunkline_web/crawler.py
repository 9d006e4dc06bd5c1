"""``web_crawler``: a few pages of one site, the way a person would look around there, by its ``robots.txt``."""

import math
import re
from typing import Annotated

import anyio
from msgspec import Meta

from trunkline import Tool, ToolContext, ToolError, tool
from trunkline.api.egress import UrlRefused, WebAddress, parse_url
from trunkline.api.text import wrap_context
from trunkline_web.charsets import decode_body
from trunkline_web.fetch_tool import Url, page_fetcher, raise_for_status
from trunkline_web.fetcher import LARGEST, CrossSiteRedirectError, HttpResponse, PageFetcher
from trunkline_web.page import PageText, read_page
from trunkline_web.robots import MOST_BYTES as MOST_ROBOTS
from trunkline_web.robots import RobotsPolicy, parse_robots
from trunkline_web.settings import WebSettings

CRAWL_SECONDS = 90.0
"""Seconds after which no further page is read."""

MOST_BYTES = 32 * 1024 * 1024
MOST_WAITING = 2_000
PAUSE = 0.2
"""Seconds between two requests, if the site does not want more."""

WHOLE_CHARACTERS = 32_000
"""Characters that are shown whole: about 8000 tokens. Beyond that pages are kept to be searched."""

BEGINNING = 400

_NON_PAGE_SUFFIX = re.compile(
    r"\.(?:png|jpe?g|gif|webp|svg|ico|avif|css|js|mjs|map|woff2?|ttf|zip|gz|tgz|bz2|xz|7z|rar|tar|exe|dmg|iso|deb|rpm"
    r"|whl|jar|mp[34]|m4a|ogg|wav|webm|mov|avi)$",
    re.IGNORECASE,
)

Pages = Annotated[int, Meta(ge=1, le=30)]
Depth = Annotated[int, Meta(ge=0, le=3)]


def crawler_tool(settings: WebSettings) -> Tool:
    """The tool with these settings."""
    fetcher = page_fetcher(settings)

    @tool(
        effect="read",
        network=("url",),
        unbound_params=("max_pages", "max_depth"),
        timeout=CRAWL_SECONDS + 90.0,
    )
    async def web_crawler(context: ToolContext, url: Url, max_pages: Pages = 10, max_depth: Depth = 1) -> str:
        """Read several pages of one site, from a page along its links. Long text is stored with this conversation for
        search_in_documents; short text is returned whole.

        Args:
            url: Where to begin, such as https://example.com/docs/.
            max_pages: How many pages to read.
            max_depth: How many links away from the first page to go.
        """
        crawl = Crawler(fetcher, context, settings.user_agent)
        with anyio.move_on_after(CRAWL_SECONDS) as clock:
            await crawl.run(parse_url(url), max_pages, max_depth)
        crawl.out_of_time = clock.cancelled_caught
        return await crawl.report()

    return web_crawler


class Crawler:
    """A crawl of a site. ``run`` gathers pages, ``report`` describes them.

    It goes by distance: what is equally far from the first page is fetched one after the other, and read together.
    """

    def __init__(self, fetcher: PageFetcher, context: ToolContext, user_agent: str) -> None:
        self.out_of_time = False
        self._fetcher = fetcher
        self._context = context
        self._user_agent = user_agent
        self._read: dict[str, PageText] = {}
        self._seen: dict[str, None] = {}
        self._left_out: list[str] = []
        self._bytes = 0
        self._tries = 0
        self._robots = RobotsPolicy()

    @property
    def pages(self) -> list[PageText]:
        """The pages that were read, in order of their distance from the first."""
        return [self._read[url] for url in self._seen if url in self._read]

    async def run(self, first: WebAddress, most: int, depth: int) -> None:
        """Read pages. Raises ToolError when the first cannot be read."""
        self._robots = await self._read_robots(first)
        self._seen[first.url] = None
        waiting = [first]
        for _ in range(depth + 1):
            found: list[WebAddress] = []
            while waiting and not self._is_enough(most):
                now, waiting = self._next_batch(waiting, most)
                found += await self._read_pages(now)
            waiting = found

    def _is_enough(self, most: int) -> bool:
        return len(self._read) >= most or self._tries >= 2 * most or self._bytes >= MOST_BYTES

    def _next_batch(self, waiting: list[WebAddress], most: int) -> tuple[list[WebAddress], list[WebAddress]]:
        """Return the addresses to fetch now, up to the number still wanted, and those for later."""
        room = most - len(self._read)
        return waiting[:room], waiting[room:]

    async def _read_pages(self, addresses: list[WebAddress]) -> list[WebAddress]:
        """Read these pages; where they lead that is new."""
        answers = [came for address in addresses if (came := await self._fetch(address))]
        async with anyio.create_task_group() as tasks:
            for address, answer in answers:
                tasks.start_soon(self._read_answer, address, answer)
        if not self._read and self._left_out:
            raise ToolError(self._left_out[0], kind="upstream_error")
        pages = [self._read[address.url] for address, _ in answers if address.url in self._read]
        return [link for page in pages for link in self._new_links(page)]

    async def _fetch(self, address: WebAddress) -> tuple[WebAddress, HttpResponse] | None:
        if not self._robots.is_allowed(address.target):
            self._note_disallowed(address)
            return None
        if self._tries:
            await anyio.sleep(max(PAUSE, self._robots.delay))
        self._tries += 1
        self._context.report(f"{self._tries} pages asked for; now {address.url[:200]}")
        try:
            answer = await self._fetcher.get(address, most=min(LARGEST, MOST_BYTES - self._bytes))
            self._bytes += len(answer.body)
            raise_for_status(answer)
        except ToolError as error:
            self._left_out.append(str(error)[:500])
            return None
        return address, answer

    async def _read_answer(self, address: WebAddress, answer: HttpResponse) -> None:
        try:
            self._read[address.url] = await read_page(answer, self._context)
        except ToolError as error:
            self._left_out.append(str(error)[:500])

    async def report(self) -> str:
        """Return a report on the pages: their whole text when it is short, else an overview; the full text is kept for
        searches."""
        pages = self.pages
        if not pages:
            raise ToolError(
                "No page was read within the time limit. fetch_webpage reads a single one.", kind="timeout"
            )
        host = pages[0].address.host
        whole = sum(len(page.text) for page in pages) <= WHOLE_CHARACTERS
        kept = not whole and await self._collect_pages()
        body = "\n\n".join(_section(page, math.inf if whole else self._page_length(kept)) for page in pages)
        return "\n".join(filter(None, [wrap_context(f"web {host}", body), self._notes(whole, kept)]))

    def _page_length(self, kept: bool) -> float:
        return BEGINNING if kept else WHOLE_CHARACTERS // len(self._read)

    def _notes(self, whole: bool, kept: bool) -> str:
        notes = [f"[{len(self._read)} page{'s were' if len(self._read) > 1 else ' was'} read."]
        if kept:
            notes.append("These are their beginnings; search_in_documents searches all of their text.")
        elif not whole:
            notes.append("These are their beginnings; fetch_webpage reads one whole.")
        if self.out_of_time:
            notes.append("The time limit was reached before the others.")
        notes += [f"Not read: {why}" for why in self._left_out[:10]]
        return " ".join(notes) + "]"

    async def _collect_pages(self) -> bool:
        """Keep the pages with the conversation. False where there is no place for them."""
        try:
            for page in self.pages:
                await self._context.documents.collect(f"web/{_name(page.address)}.md", page.text)
        except ToolError:
            return False
        return True

    async def _read_robots(self, first: WebAddress) -> RobotsPolicy:
        """Return the policy of the site's ``robots.txt``. A missing file restricts nothing; one that cannot be fetched
        now forbids the crawl."""
        try:
            answer = await self._fetcher.get(first.resolve_link("/robots.txt"), most=MOST_ROBOTS)
        except CrossSiteRedirectError:
            return RobotsPolicy()
        if answer.status >= 500:
            raise ToolError(
                f"The robots.txt of {first.host} is not available now ({answer.status}), so the site is not "
                f"crawled. Try again later, or read single pages with fetch_webpage.",
                kind="unavailable",
            )
        if answer.status != 200:
            return RobotsPolicy()
        return parse_robots(decode_body(answer.body, answer.charset, cut=answer.cut), self._user_agent)

    def _note_disallowed(self, address: WebAddress) -> None:
        if not self._read:
            raise ToolError(
                f"The site's robots.txt asks programs not to crawl {address.url[:500]}, so it was not. "
                f"If a person wants just this page, fetch_webpage reads it.",
                kind="permission_denied",
            )
        self._left_out.append(f"{address.url[:200]}: disallowed by robots.txt.")

    def _new_links(self, page: PageText) -> list[WebAddress]:
        """The links of the page within its site that were not seen before."""
        found = []
        for link in page.links:
            try:
                address = page.address.resolve_link(link)
            except UrlRefused:
                continue
            same = (address.site, address.port) == (page.address.site, page.address.port)
            fits = same and not _NON_PAGE_SUFFIX.search(address.target.partition("?")[0])
            if fits and address.url not in self._seen and len(self._seen) < MOST_WAITING:
                self._seen[address.url] = None
                found.append(address)
        return found


def _section(page: PageText, most: float) -> str:
    text = page.text if len(page.text) <= most else f"{page.text[: int(most)]} […]"
    return f"# {page.title or page.address.target}\n{page.address.url}\n\n{text}"


def _name(address: WebAddress) -> str:
    """The name under which a page is kept."""
    return re.sub(r"[^\w./-]+", "-", f"{address.host}{address.target}").replace("..", ".").strip("/.-")[:150]
