"""``web_search``: what a search engine finds. Which one is the owner's choice; the tool knows none of them."""

from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from trunkline import Tool, ToolContext, tool
from trunkline._util.egress import UrlRefused, read_url
from trunkline._util.untrusted_text import fenced
from trunkline_web.charsets import visible
from trunkline_web.settings import WebSettings

MOST = 10
"""Results of a search (MB-F19, MN-F16)."""

LONGEST_TITLE, LONGEST_TEXT = 200, 600
TIMEOUT = 60.0

Query = Annotated[str, Meta(min_length=1, max_length=400)]
Count = Annotated[int, Meta(ge=1, le=MOST)]
Language = Annotated[str, Meta(pattern=r"^([a-z]{2,3}(-[A-Za-z]{2,4})?)?$")]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A result: what a search engine says of a page."""

    title: str
    url: str
    text: str = ""
    age: str = ""


class Provider(Protocol):
    """A search engine."""

    name: str

    async def search(self, query: str, count: int, language: str) -> list[Found]:
        """At most so many results, best first; ``language`` may be empty. Raises ToolError."""
        ...


def provider_of(settings: WebSettings) -> Provider:
    """The search engine that the owner chose."""
    from trunkline_web.providers import Brave, SearXNG

    return Brave(settings) if settings.searches_with == "brave" else SearXNG(settings)


def made(settings: WebSettings) -> Tool:
    """The tool with these settings."""
    from trunkline_web.providers import configured_wrong

    provider = provider_of(settings)

    @tool(effect="read", network=True, timeout=TIMEOUT, always_send=not configured_wrong(settings))
    async def web_search(
        context: ToolContext,
        query: Query,
        count: Count = MOST,
        search_lang: Language = "",
        num_results: Count | None = None,
    ) -> str:
        """Search the web: titles, addresses and a few words of each page. Read one with fetch_webpage.

        Args:
            query: What to look for.
            count: How many results.
            search_lang: The language of the results, such as en or de; any without it.
            num_results: Another name for count.
        """
        found = await provider.search(query, num_results or count, search_lang)
        return told(provider.name, found[: num_results or count])

    return web_search


def told(name: str, found: list[Found]) -> str:
    """The results for the model, marked as data. What is no address of a page is left out."""
    good = [one for one in found if _is_page(one.url)]
    if not good:
        return "Nothing was found. Other or fewer words may find something."
    return fenced(f"web search by {name}", "\n\n".join(_entry(n, one) for n, one in enumerate(good, start=1)))


def _entry(number: int, one: Found) -> str:
    age = f" ({_short(one.age, 40)})" if one.age else ""
    lines = [f"{number}. {_short(one.title, LONGEST_TITLE)}{age}", one.url, _short(one.text, LONGEST_TEXT)]
    return "\n".join(line for line in lines if line)


def _short(text: str, most: int) -> str:
    line = " ".join(visible(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _is_page(url: str) -> bool:
    try:
        return bool(read_url(url))
    except UrlRefused:
        return False
