"""The plugin: declares the section, the adapter when it is usable, and a health check that says why it is not."""

from collections.abc import Iterable

from trunkline import ConfigSection, HealthCheck, HealthResult, PluginSettings, hookimpl
from trunkline.api.model import ModelAdapter, ModelError
from trunkline_openai.settings import OpenAISettings

CONFIGURE = (
    'export OPENAI_API_KEY=..., or set base_url in [adapters.openai], such as "http://127.0.0.1:11434/v1".'
)


@hookimpl
def trunkline_config() -> Iterable[ConfigSection]:
    return [ConfigSection("adapters", "openai", OpenAISettings)]


@hookimpl
def trunkline_models(settings: PluginSettings) -> Iterable[ModelAdapter]:
    section = settings.section(OpenAISettings)
    if not section.usable:
        return []
    from trunkline_openai.adapter import OpenAIAdapter

    return [OpenAIAdapter(section)]


@hookimpl
def trunkline_health_checks(settings: PluginSettings) -> Iterable[HealthCheck]:
    section = settings.section(OpenAISettings)

    async def check() -> HealthResult:
        return await _check(section)

    return [HealthCheck("adapters.openai", check, online=True)]


async def _check(section: OpenAISettings) -> HealthResult:
    if not section.usable:
        return HealthResult("ok", "OpenAI is not configured; the offline adapter answers.", CONFIGURE)
    from trunkline_openai.adapter import OpenAIAdapter

    adapter = OpenAIAdapter(section)
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
            return "Check the key: OPENAI_API_KEY, or the variable that api_key in [adapters.openai] names."
        case "unavailable" | "timeout":
            return "Start the server there, or correct base_url in [adapters.openai]; it ends with /v1 as a rule."
    return "Check that base_url in [adapters.openai] names a server that speaks OpenAI's protocol."
