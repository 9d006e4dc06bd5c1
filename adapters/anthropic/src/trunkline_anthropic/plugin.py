"""The plugin: declares the section, the adapter if it is usable, and a health check that says why it is not."""

from collections.abc import Iterable

from trunkline import ConfigSection, HealthCheck, HealthResult, PluginSettings, hookimpl
from trunkline.api.model import AdapterSetup, ModelAdapter, ModelError
from trunkline_anthropic.settings import AnthropicSettings

CONFIGURE = "export ANTHROPIC_API_KEY=..., or set base_url in [adapters.anthropic] for a compatible server."


@hookimpl
def trunkline_config() -> Iterable[ConfigSection]:
    setup = AdapterSetup("Anthropic (Claude)", keys=("ANTHROPIC_API_KEY",))
    return [ConfigSection("adapters", "anthropic", AnthropicSettings, setup)]


@hookimpl
def trunkline_models(settings: PluginSettings) -> Iterable[ModelAdapter]:
    section = settings.section(AnthropicSettings)
    if not section.usable:
        return []
    from trunkline_anthropic.adapter import AnthropicAdapter

    return [AnthropicAdapter(section)]


@hookimpl
def trunkline_health_checks(settings: PluginSettings) -> Iterable[HealthCheck]:
    section = settings.section(AnthropicSettings)

    async def check() -> HealthResult:
        return await _check(section)

    return [HealthCheck("adapters.anthropic", check, online=True)]


async def _check(section: AnthropicSettings) -> HealthResult:
    if not section.usable:
        return HealthResult("ok", "Anthropic is not configured.", CONFIGURE)
    from trunkline_anthropic.adapter import AnthropicAdapter

    adapter = AnthropicAdapter(section)
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
            return "Check the key: ANTHROPIC_API_KEY, or the variable that api_key in [adapters.anthropic] names."
        case "unavailable" | "timeout":
            return "Check the connection, or correct base_url in [adapters.anthropic]."
    return "Check that base_url in [adapters.anthropic] names a server with Anthropic's Messages API."
