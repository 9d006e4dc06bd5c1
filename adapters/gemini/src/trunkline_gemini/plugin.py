"""The plugin: declares the section, the adapter if it is usable, and a health check that says why it is not."""

from collections.abc import Iterable

from trunkline import ConfigSection, HealthCheck, HealthResult, PluginSettings, hookimpl
from trunkline.api.model import AdapterSetup, ModelAdapter, ModelError
from trunkline_gemini.settings import GeminiSettings

CONFIGURE = (
    "export GEMINI_API_KEY=..., or set base_url in [adapters.gemini] for a server with the Gemini API."
)


@hookimpl
def trunkline_config() -> Iterable[ConfigSection]:
    setup = AdapterSetup("Google (Gemini)", keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"))
    return [ConfigSection("adapters", "gemini", GeminiSettings, setup)]


@hookimpl
def trunkline_models(settings: PluginSettings) -> Iterable[ModelAdapter]:
    section = settings.section(GeminiSettings)
    if not section.usable:
        return []
    from trunkline_gemini.adapter import GeminiAdapter

    return [GeminiAdapter(section)]


@hookimpl
def trunkline_health_checks(settings: PluginSettings) -> Iterable[HealthCheck]:
    section = settings.section(GeminiSettings)

    async def check() -> HealthResult:
        return await _check(section)

    return [HealthCheck("adapters.gemini", check, online=True)]


async def _check(section: GeminiSettings) -> HealthResult:
    if not section.usable:
        return HealthResult("ok", "Gemini is not configured.", CONFIGURE)
    from trunkline_gemini.adapter import GeminiAdapter

    adapter = GeminiAdapter(section)
    try:
        models = await adapter.models()
    except ModelError as error:
        return HealthResult("warning", f"{section.url} does not answer ({error.fault}).", _cure(error))
    finally:
        await adapter.aclose()
    return HealthResult("ok", f"{section.url} answers and lists {len(models)} models.")


def _cure(error: ModelError) -> str:
    match error.fault:
        case "authentication":
            return (
                "Check the key: GEMINI_API_KEY, GOOGLE_API_KEY, or the variable that api_key in "
                "[adapters.gemini] names."
            )
        case "unavailable" | "timeout":
            return "Check the connection, or correct base_url in [adapters.gemini]."
    return "Check that base_url in [adapters.gemini] names a server with the Gemini API."
