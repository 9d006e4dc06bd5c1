"""Two search engines: Brave, by its API, and SearXNG, an instance of one's own. Keys go to them and nowhere else."""

import html
import re
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from trunkline import ConfigError, ToolError
from trunkline.api.egress import HostGuard, WebAddress, parse_url
from trunkline_web.fetcher import HttpResponse, PageFetcher
from trunkline_web.search_tool import SearchResult
from trunkline_web.settings import WebSettings

MOST_BYTES = 4 * 1024 * 1024
_TAG = re.compile(r"</?\w{1,10}/?>")

T = TypeVar("T")


class _BraveResult(msgspec.Struct):
    title: str
    url: str
    description: str | None = ""
    age: str | None = ""


class _BraveWeb(msgspec.Struct):
    results: list[_BraveResult] = []


class _BraveAnswer(msgspec.Struct):
    web: _BraveWeb | None = None


class _SearXNGResult(msgspec.Struct):
    url: str
    title: str | None = ""
    content: str | None = ""
    published: str | None = msgspec.field(default="", name="publishedDate")


class _SearXNGAnswer(msgspec.Struct):
    results: list[_SearXNGResult] = []


class Brave:
    """Brave's web search API (``GET /res/v1/web/search``)."""

    name = "Brave"

    def __init__(self, settings: WebSettings) -> None:
        self._settings = settings
        self._at = parse_url(settings.brave_url)
        self._line = _endpoint_fetcher(self._at, settings)

    async def search(self, query: str, count: int, language: str) -> list[SearchResult]:
        """See ``SearchProvider.search``."""
        params = {"q": query, "count": str(count)} | ({"search_lang": language} if language else {})
        headers = {"X-Subscription-Token": self._key(), "Accept": "application/json"}
        answer = await self._line.get(
            _with_query(self._at, params), headers=headers, most=MOST_BYTES, redirects=0
        )
        self._raise_for_status(answer)
        found = _decode_results(answer, _BraveAnswer, self.name)
        return [
            SearchResult(
                title=_plain_text(one.title),
                url=one.url,
                text=_plain_text(one.description),
                age=one.age or "",
            )
            for one in (found.web.results if found.web else [])
        ]

    def _key(self) -> str:
        try:
            key = self._settings.brave_key_reference.reveal()
        except ConfigError:
            raise ToolError(
                f"The web cannot be searched yet: no search engine is configured. A person can set "
                f"{self._settings.brave_key_reference.env} to a key of Brave's search API, "
                "or searxng_url in [plugins.web] of "
                f"trunkline.toml to the address of a SearXNG instance. Pages whose address is known can be read with "
                f"fetch_webpage.",
                kind="unsupported",
            ) from None
        if not key.isascii() or not key.isprintable() or key != key.strip():
            raise ToolError(
                f"{self._settings.brave_key_reference.env} is not a key that can be sent. A person has to correct it.",
                kind="unsupported",
            )
        return key

    def _raise_for_status(self, answer: HttpResponse) -> None:
        if answer.status in (401, 403) or (answer.status == 422 and b"TOKEN" in answer.body[:2000]):
            raise ToolError(
                f"Brave rejects the key in {self._settings.brave_key_reference.env} ({answer.status}). "
                "A person must correct it; a retry does not help.",
                kind="unsupported",
            )
        _raise_for_status(answer, self.name)


class SearXNG:
    """An instance of SearXNG (``GET /search?format=json``)."""

    name = "SearXNG"

    def __init__(self, settings: WebSettings) -> None:
        self._at = parse_url(f"{settings.searxng_url.rstrip('/')}/search") if settings.searxng_url else None
        self._line = _endpoint_fetcher(self._at, settings) if self._at else None

    async def search(self, query: str, count: int, language: str) -> list[SearchResult]:
        """See ``SearchProvider.search``."""
        if self._at is None or self._line is None:
            raise ToolError(
                "The web cannot be searched yet: SearXNG is chosen, and searxng_url in [plugins.web] of trunkline.toml "
                "is not set. A person must set it.",
                kind="unsupported",
            )
        params = {"q": query, "format": "json"} | ({"language": language} if language else {})
        answer = await self._line.get(
            _with_query(self._at, params),
            headers={"Accept": "application/json"},
            most=MOST_BYTES,
            redirects=0,
        )
        if answer.status == 403:
            raise ToolError(
                "SearXNG does not answer programs (403). A person has to add json to search.formats in its "
                "settings.yml.",
                kind="unsupported",
            )
        _raise_for_status(answer, self.name)
        found = _decode_results(answer, _SearXNGAnswer, self.name).results
        return [
            SearchResult(
                title=_plain_text(one.title),
                url=one.url,
                text=_plain_text(one.content),
                age=(one.published or "")[:10],
            )
            for one in found[:count]
        ]


def _endpoint_fetcher(address: WebAddress, settings: WebSettings) -> PageFetcher:
    """Return a fetcher for this one address, also in private networks, because the owner named it."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    guard = HostGuard([f"{host}:{address.port}"])
    return PageFetcher(guard, seconds=settings.timeout, user_agent=settings.user_agent)


def _with_query(address: WebAddress, params: dict[str, str]) -> WebAddress:
    joint = "&" if "?" in address.target else "?"
    return msgspec.structs.replace(address, target=f"{address.target}{joint}{urlencode(params)}")


def _raise_for_status(answer: HttpResponse, name: str) -> None:
    if answer.status == 200:
        return
    if answer.status == 429:
        raise ToolError(
            f"{name} received too many requests. {_retry_hint(answer)} Searches one after the other need less.",
            kind="rate_limited",
        )
    later = " Try again later." if answer.status >= 500 else ""
    raise ToolError(f"{name} answers {answer.status} and no results.{later}", kind="upstream_error")


def _retry_hint(answer: HttpResponse) -> str:
    """Return when to try again, according to the answer."""
    said = answer.headers.get("retry-after") or answer.headers.get("x-ratelimit-reset", "").partition(",")[0]
    seconds = said.strip()
    if seconds.isascii() and seconds.isdecimal() and len(seconds) < 9:
        return f"Try again in {max(1, int(seconds))} seconds."
    return "Try again later."


def _decode_results(answer: HttpResponse, kind: type[T], name: str) -> T:
    try:
        found: T = msgspec.json.decode(answer.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ToolError(
            f"{name} answered with something that is not a list of results. Try again later.",
            kind="upstream_error",
        ) from error
    return found


def _plain_text(text: Any) -> str:
    """The text without the marks that search engines set around what fits."""
    return html.unescape(_TAG.sub("", text or ""))


def configuration_problem(settings: WebSettings) -> str:
    """Return why these settings allow no search; "" when they do."""
    if settings.search_engine == "searxng":
        return "" if settings.searxng_url else "SearXNG is chosen, and searxng_url does not say where it is"
    return (
        ""
        if settings.brave_key_reference.is_set()
        else f"{settings.brave_key_reference.env} is not set, and there is no searxng_url"
    )
