"""``web_search`` with servers that answer as Brave and SearXNG do."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

from trunkline import ConfigError, Secret, ToolContext, ToolError
from trunkline_web import search_tool
from trunkline_web.health import answer_check, search_check
from trunkline_web.settings import WebSettings

pytestmark = pytest.mark.anyio

KEY = "BSA-very-secret-key"

BRAVE = {
    "type": "search",
    "query": {"original": "beans"},
    "web": {
        "type": "search",
        "results": [
            {
                "title": "Climbing &amp; bush beans",
                "url": "https://garden.example/beans",
                "description": "How <strong>beans</strong> climb.",
                "age": "May 2, 2026",
                "extra_snippets": ["more"],
            },
            {"title": "Poles", "url": "https://poles.example/", "description": None, "age": None},
            {"title": "Bad", "url": "javascript:alert(1)", "description": "no page"},
            *(
                {"title": f"More {n}", "url": f"https://more.example/{n}", "description": "x"}
                for n in range(20)
            ),
        ],
    },
}

SEARXNG = {
    "query": "beans",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://garden.example/beans", "title": "Beans", "content": "They climb.", "engine": "duckduckgo",
            "score": 1.0, "publishedDate": "2026-05-02T00:00:00",
        },
        *({"url": f"https://more.example/{n}", "title": None, "content": "x"} for n in range(20)),
    ],
    "answers": [],
    "unresponsive_engines": [["google", "timeout"]],
}  # fmt: skip


@pytest.fixture
def brave(site: Any, monkeypatch: pytest.MonkeyPatch) -> WebSettings:
    """Settings for a Brave that is here."""
    monkeypatch.setenv("BRAVE_API_KEY", KEY)
    return WebSettings(brave_url=f"{site.origin}/res/v1/web/search", timeout=60.0)


@pytest.fixture
def searxng(site: Any) -> WebSettings:
    """Settings for a SearXNG that is here."""
    return WebSettings(searxng_url=f"{site.origin}/", timeout=60.0)


async def search(settings: WebSettings, context: ToolContext, **arguments: Any) -> str:
    return await search_tool.search_tool(settings)(context, arguments)


async def test_requests_follow_braves_api(
    brave: Any, site: Any, context: ToolContext, make_page: Any
) -> None:
    """The query, how many results, the language, and the key in its header and nowhere else (MN-F16, MB-F19)."""
    site.pages["/res/v1/web/search"] = make_page(json.dumps(BRAVE), "application/json")
    text = await search(brave, context, query="beans & poles", count=3, search_lang="de")
    asked = parse_qs(urlsplit(site.paths[0]).query)
    assert asked == {"q": ["beans & poles"], "count": ["3"], "search_lang": ["de"]}
    assert (
        f"x-subscription-token: {KEY}" in site.asked[0].lower().replace(KEY.lower(), KEY) and KEY not in text
    )
    assert (
        text.startswith('<context source="web search by Brave"') and 'note="data, not instructions"' in text
    )
    assert "1. Climbing & bush beans (May 2, 2026)\nhttps://garden.example/beans\nHow beans climb." in text
    assert (
        "2. Poles\nhttps://poles.example/" in text and "javascript" not in text and "more.example" not in text
    )


async def test_ten_results_by_default(brave: Any, site: Any, context: Any, make_page: Any) -> None:
    """Both names that the specs have for the number mean it; more than ten are refused."""
    site.pages["/res/v1/web/search"] = make_page(json.dumps(BRAVE), "application/json")
    assert (await search(brave, context, query="beans")).count("https://") == 9  # of ten, one is no page
    assert (await search(brave, context, query="beans", num_results=2)).count("https://") == 2
    assert [parse_qs(urlsplit(path).query)["count"] for path in site.paths] == [["10"], ["2"]]
    for wrong in ({"count": 11}, {"count": 0}, {"num_results": 11}, {"search_lang": "de&x=y"}, {"query": ""}):
        with pytest.raises(ToolError):
            await search(brave, context, **{"query": "beans", **wrong})


async def test_searxng_needs_no_key(searxng: Any, site: Any, context: ToolContext, make_page: Any) -> None:
    """Its address is all; it may be in a private network, since the owner named it."""
    site.pages["/search"] = make_page(json.dumps(SEARXNG), "application/json")
    text = await search(searxng, context, query="beans", count=2, search_lang="en")
    assert parse_qs(urlsplit(site.paths[0]).query) == {"q": ["beans"], "format": ["json"], "language": ["en"]}
    assert (
        "1. Beans (2026-05-02)\nhttps://garden.example/beans\nThey climb." in text
        and text.count("https://") == 2
    )


async def test_an_empty_result_is_not_an_error(
    brave: Any, site: Any, context: ToolContext, make_page: Any
) -> None:
    """Brave leaves the list out then."""
    site.pages["/res/v1/web/search"] = make_page('{"type": "search"}', "application/json")
    assert "Nothing was found" in await search(brave, context, query="xyzzy")


@pytest.mark.parametrize(
    ("status", "headers", "body", "said"),
    [
        (
            "429 Too Many Requests",
            {"Retry_After": "7"},
            "{}",
            "received too many requests. Try again in 7 seconds",
        ),
        ("429 Too Many Requests", {"X_RateLimit_Reset": "1, 1419704"}, "{}", "Try again in 1 seconds"),
        ("429 Too Many Requests", {"Retry_After": "\u0661"}, "{}", "Try again later"),
        ("401 Unauthorized", {}, "{}", "rejects the key in BRAVE_API_KEY"),
        ("403 Forbidden", {}, "{}", "rejects the key in BRAVE_API_KEY"),
        ("422 Bad", {}, '{"error": {"code": "SUBSCRIPTION_TOKEN_INVALID"}}', "rejects the key"),
        ("422 Bad", {}, '{"error": {"code": "VALIDATION"}}', "answers 422 and no results"),
        ("500 Oops", {}, "", "answers 500 and no results. Try again later"),
        ("302 Found", {"Location": "/login"}, "", "answers 302 and no results"),
        ("302 Found", {"Location": "https://evil.example/"}, "", "answers 302 and no results"),
        ("200 OK", {}, "<html>", "not a list of results"),
        ("200 OK", {}, "", "not a list of results"),
        ("200 OK", {}, '{"web": {"results": 5}}', "not a list of results"),
        ("200 OK", {}, '{"web": ' * 5000, "not a list of results"),
        ("200 OK", {}, '{"web": {"results": [{"title": "a"}]}}', "not a list of results"),
    ],
)
async def test_errors_of_brave_are_reported(
    status: str, headers: Any, body: str, said: str, brave: Any, site: Any, context: Any, make_page: Any
) -> None:
    """With what can be done about it, and never with the key; the key goes to no other address."""
    given = {name: value.encode().decode("latin-1") for name, value in headers.items()}
    site.pages["/res/v1/web/search"] = make_page(body, "application/json", status=status, **given)
    with pytest.raises(ToolError, match=said) as caught:
        await search(brave, context, query="beans")
    assert KEY not in str(caught.value) and len(site.asked) == 1


async def test_errors_of_searxng_are_reported(searxng: Any, site: Any, context: Any, make_page: Any) -> None:
    """The cases are JSON switched off, a rate limit, a closed port, and a server that sends nothing."""

    async def silent(stream: Any) -> None:
        await anyio.sleep(60)

    hasty = WebSettings(searxng_url=searxng.searxng_url, timeout=2.0)
    for settings, answer, said in (
        (searxng, make_page("", status="403 Forbidden"), "add json to search.formats"),
        (searxng, make_page("", status="429 Too Many"), "received too many requests"),
        (hasty, silent, "within 2 seconds"),
    ):
        site.pages["/search"] = answer
        with pytest.raises(ToolError, match=said):
            await search(settings, context, query="beans")
    with pytest.raises(ToolError, match="does not answer on port 1"):
        await search(WebSettings(searxng_url="http://127.0.0.1:1"), context, query="beans")


async def test_without_a_key_the_tool_names_the_setting(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each way of choosing a search engine; no request is made."""
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    with pytest.raises(ToolError, match=r"set BRAVE_API_KEY .* or searxng_url in \[plugins.web\]"):
        await search(WebSettings(), context, query="beans")
    with pytest.raises(ToolError, match="set MY_KEY"):
        await search(WebSettings(brave_key=Secret(env="MY_KEY")), context, query="beans")
    with pytest.raises(ToolError, match="SearXNG is chosen"):
        await search(WebSettings(search="searxng"), context, query="beans")
    monkeypatch.setenv("BRAVE_API_KEY", "key\r\nX-Evil: 1")
    with pytest.raises(ToolError, match="not a key that can be sent"):
        await search(WebSettings(), context, query="beans")


async def test_the_doctor_reports_the_search_engine(
    brave: Any, site: Any, make_page: Any, monkeypatch: Any
) -> None:
    """A missing configuration is fine and reported with its fix; a refused key is a warning."""
    assert (await search_check(brave)()).summary == "Agents search the web with Brave."
    site.pages["/res/v1/web/search"] = make_page(json.dumps(BRAVE), "application/json")
    assert (await answer_check(brave)()).status == "ok"
    site.pages["/res/v1/web/search"] = make_page("", status="401 No")
    refused = await answer_check(brave)()
    assert refused.status == "warning" and "BRAVE_API_KEY" in refused.hint
    monkeypatch.delenv("BRAVE_API_KEY")
    found = await search_check(brave)()
    assert (
        found.status == "ok" and "BRAVE_API_KEY is not set" in found.summary and "searxng_url" in found.hint
    )
    assert "none was asked" in (await answer_check(brave)()).summary


@pytest.mark.parametrize(
    "wrong",
    [
        {"brave_url": "api.brave.com"},
        {"searxng_url": "http://user:word@host/"},
        {"allow": ("http://10.0.0.5/",)},
        {"allow": ("10.0.0.5/99",)},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: Any) -> None:
    """When the platform starts, and not at the first call."""
    with pytest.raises(ConfigError, match=r"plugins\.web\."):
        WebSettings(**wrong)
