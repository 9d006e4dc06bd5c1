"""What doctor says about the languages of the web app."""

from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

import trunkline
from trunkline.api.gateway import Locale
from trunkline.cli.checks.check import CheckContext
from trunkline.cli.checks.plugin_checks import plugins_locales
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline.home.paths import Home
from trunkline.plugins import Plugins

from .conftest import config_of

pytestmark = pytest.mark.anyio

WITHOUT_APP = '[plugins]\ndisabled = ["web_app"]'
ENGLISH = Locale("en", "English", {f"key.{number}": "{name}" for number in range(8)})


class Languages:
    """A plugin with languages."""

    name = "languages"

    def __init__(self, *locales: Locale) -> None:
        self.locales = locales

    @trunkline.hookimpl
    def trunkline_locales(self) -> tuple[Locale, ...]:
        return self.locales


@pytest.fixture
def examined(home, load: Callable[..., Plugins]):
    """The result of the check with these languages, in place of those of the web app."""

    async def run(*locales: Locale) -> HealthResult | None:
        plugins = load(WITHOUT_APP, extra=(Languages(*locales),))
        config = config_of(home, WITHOUT_APP, {})
        return await plugins_locales(
            CheckContext(config, Home.of(config), False, AsyncExitStack(), plugins=plugins)
        )

    return run


async def test_doctor_names_texts_that_are_not_used(examined) -> None:
    """Keys that the app does not have, and texts with other placeholders, are named up to five, and counted."""
    wrong = {f"key.{number}": "{nomo}" for number in range(7)}
    found = await examined(ENGLISH, Locale("eo", "Esperanto", {**wrong, "gone": "for"}))
    assert found.status == "warning"
    assert "the app has no text gone, which eo translates" in found.summary
    assert "key.0, key.1, key.2, key.3, key.4 and 2 more" in found.summary


async def test_doctor_lists_languages_whose_texts_all_fit(examined) -> None:
    """A language with few texts is no problem. Without a web app there is no English, and nothing is checked."""
    eo = Locale("eo", "Esperanto", {"key.1": "de {name}"})
    found = await examined(ENGLISH, eo)
    assert (found.status, found.summary) == ("ok", "The web app speaks English, Esperanto")
    assert await examined(eo) is None
