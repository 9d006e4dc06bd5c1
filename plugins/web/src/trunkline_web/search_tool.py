"""``web_search``: what a search engine finds. Which one is the owner's choice; the tool knows none of them."""

from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from trunkline import Tool, ToolContext, tool
from trunkline.api.egress import UrlRefused, parse_url
from trunkline.api.text import wrap_context
from trunkline_web.charsets import visible_text
from trunkline_web.settings import WebSettings

MAX_RESULTS = 10
"""Results of a search."""

LONGEST_TITLE, LONGEST_TEXT = 200, 600
TIMEOUT = 60.0

Query = Annotated[str, Meta(min_length=1, max_length=400)]
Count = Annotated[int, Meta(ge=1, le=MAX_RESULTS)]
Language = Annotated[str, Meta(pattern=r"^([a-z]{2,3}(-[A-Za-z]{2,4})?)?$")]


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result: what a search engine says of a page."""

    title: str
    url: str
    text: str = ""
    age: str = ""


class SearchProvider(Protocol):
    """A search engine."""

    name: str

    async def search(self, query: str, count: int, language: str) -> list[SearchResult]:
        """At most so many results, best first; ``language`` may be empty. Raises ToolError."""
        ...


def configured_provider(settings: WebSettings) -> SearchProvider:
    """The search engine that the owner chose."""
    from trunkline_web.providers import Brave, SearXNG

    return Brave(settings) if settings.search_engine == "brave" else SearXNG(settings)


def search_tool(settings: WebSettings) -> Tool:
    """The tool with these settings."""
    from trunkline_web.providers import configuration_problem

    provider = configured_provider(settings)

    @tool(effect="read", network=True, timeout=TIMEOUT, always_send=not configuration_problem(settings))
    async def web_search(
        context: ToolContext,
        query: Query,
        count: Count = MAX_RESULTS,
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
        return format_results(provider.name, found[: num_results or count])

    return web_search


def format_results(name: str, results: list[SearchResult]) -> str:
    """The results for the model, marked as data. What is no address of a page is left out."""
    good = [one for one in results if _is_page(one.url)]
    if not good:
        return "Nothing was found. Other or fewer words may find something."
    return wrap_context(
        f"web search by {name}", "\n\n".join(_format_result(n, one) for n, one in enumerate(good, start=1))
    )


def _format_result(number: int, one: SearchResult) -> str:
    age = f" ({_shorten(one.age, 40)})" if one.age else ""
    lines = [
        f"{number}. {_shorten(one.title, LONGEST_TITLE)}{age}",
        one.url,
        _shorten(one.text, LONGEST_TEXT),
    ]
    return "\n".join(line for line in lines if line)


def _shorten(text: str, most: int) -> str:
    line = " ".join(visible_text(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _is_page(url: str) -> bool:
    try:
        return bool(parse_url(url))
    except UrlRefused:
        return False
