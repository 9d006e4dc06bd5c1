"""The languages of the web app over HTTP: open to everybody, checked against English, and nothing beside them."""

from collections.abc import AsyncIterator

import httpx
import pytest

import trunkline
from trunkline.api.gateway import Locale

from .conftest import Environment, started_environment

pytestmark = pytest.mark.anyio

ENGLISH = {
    "chat.send": "Send",
    "chat.new": "New",
    "nav.me": "{name} ({scope})",
    "chat.tokens": "{in} in, {out} out",
}
FRENCH = {
    "chat.send": "Envoyer",
    "nav.me": "{name} {surprise}",
    "chat.tokens": "{out} sortis, {in} entrés",
    "chat.gone": "Parti",
}


class Languages:
    """A plugin with English, as a web app has it, and with French, in which some texts are wrong."""

    name = "languages"

    @trunkline.hookimpl
    def trunkline_locales(self) -> list[Locale]:
        return [
            Locale("en", "English", ENGLISH),
            Locale("fr", "Français", FRENCH),
            Locale("pt-BR", "Português", {}),
        ]


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Environment]:
    async with started_environment(Languages(), without=("web_app",)) as env:
        yield env


@pytest.fixture
async def visitor(env: Environment) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a credential."""
    async with httpx.AsyncClient(base_url=env.url, timeout=60) as client:
        yield client


async def test_mb_f28_languages_are_listed_for_the_page_to_sign_in(visitor: httpx.AsyncClient) -> None:
    """MB-F28: everybody may read which languages there are. The version of one changes with its texts only."""
    listed = (await visitor.get("/api/locales")).json()["locales"]
    assert [(one["tag"], one["name"]) for one in listed] == [
        ("en", "English"), ("fr", "Français"), ("pt-BR", "Português"),
    ]  # fmt: skip
    assert len({one["version"] for one in listed}) == 3


async def test_english_is_what_a_translator_begins_with(visitor: httpx.AsyncClient) -> None:
    """All texts of English are there, with their keys."""
    assert (await visitor.get("/api/locales/en")).json()["texts"] == ENGLISH


async def test_a_text_that_does_not_fit_is_left_out(visitor: httpx.AsyncClient) -> None:
    """A text with other placeholders than the English one, or with a key that the app does not have, is not sent. The
    order of the placeholders is free."""
    texts = (await visitor.get("/api/locales/fr")).json()["texts"]
    assert texts == {"chat.send": "Envoyer", "chat.tokens": "{out} sortis, {in} entrés"}


async def test_nothing_else_is_open_below_the_languages(visitor: httpx.AsyncClient) -> None:
    """An unknown language is not found, whatever its name is; a path further down needs a credential."""
    for tag in ("xx", "FR", "..", "%2e%2e", "en%00", "{tag}"):
        reply = await visitor.get(f"/api/locales/{tag}")
        assert reply.status_code in (401, 404), (tag, reply.text)
        assert "texts" not in reply.text
    for path in (
        "/api/locales/en/more",
        "/api/locales/../me",
        "/api/locales/%2e%2e/me",
        "/api/locales/..%2fme",
    ):
        reply = await visitor.get(path)
        assert reply.status_code == 401, (path, reply.text)
    assert (await visitor.post("/api/locales/en", json={})).status_code == 405
