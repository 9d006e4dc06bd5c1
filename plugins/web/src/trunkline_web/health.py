"""The checks of ``trunkline doctor``: whether the web can be searched."""

from collections.abc import Awaitable, Callable

from trunkline import HealthResult, ToolError
from trunkline_web.providers import configuration_problem
from trunkline_web.search_tool import configured_provider
from trunkline_web.settings import WebSettings

Check = Callable[[], Awaitable[HealthResult]]

HINT = "export BRAVE_API_KEY=..., or set searxng_url in [plugins.web], such as http://127.0.0.1:8888."


def search_check(settings: WebSettings) -> Check:
    """Report whether a search engine is configured."""

    async def check() -> HealthResult:
        wrong = configuration_problem(settings)
        if wrong:
            return HealthResult("ok", f"Agents cannot search the web: {wrong}.", HINT)
        return HealthResult("ok", f"Agents search the web with {configured_provider(settings).name}.")

    return check


def answer_check(settings: WebSettings) -> Check:
    """Report whether it answers, by a search for one word."""

    async def check() -> HealthResult:
        if configuration_problem(settings):
            return HealthResult("ok", "No search engine is configured, so none was asked.", HINT)
        provider = configured_provider(settings)
        try:
            found = await provider.search("Trunkline", 1, "")
        except ToolError as error:
            return HealthResult("warning", f"{provider.name} does not answer: {error}", _hint(settings))
        return HealthResult("ok", f"{provider.name} answers, with {len(found)} results for one word.")

    return check


def _hint(settings: WebSettings) -> str:
    if settings.searxng_url:
        return (
            f"Check that {settings.searxng_url} is up and reachable, or correct searxng_url in [plugins.web]."
        )
    return f"Check the key that {settings.brave_key_reference.env} holds, and the network."
