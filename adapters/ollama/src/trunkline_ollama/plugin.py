"""The plugin: declares the section, the adapter, and a health check that lists missing models."""

from collections.abc import Iterable

from trunkline import ConfigSection, HealthCheck, HealthResult, PluginSettings, hookimpl
from trunkline.api.model import AdapterSetup, ModelAdapter, ModelError
from trunkline_ollama.settings import OllamaSettings

CONFIGURE = 'Set model in [adapters.ollama], such as "qwen3:8b".'


@hookimpl
def trunkline_config() -> Iterable[ConfigSection]:
    setup = AdapterSetup("Ollama, on this machine or another one")
    return [ConfigSection("adapters", "ollama", OllamaSettings, setup)]


@hookimpl
def trunkline_models(settings: PluginSettings) -> Iterable[ModelAdapter]:
    from trunkline_ollama.adapter import OllamaAdapter

    return [OllamaAdapter(settings.section(OllamaSettings))]


@hookimpl
def trunkline_health_checks(settings: PluginSettings) -> Iterable[HealthCheck]:
    section = settings.section(OllamaSettings)

    async def check() -> HealthResult:
        return await _check(section)

    return [HealthCheck("adapters.ollama", check, online=True)]


async def _check(section: OllamaSettings) -> HealthResult:
    if not section.is_configured:
        return HealthResult("ok", "Ollama is not configured.", CONFIGURE)
    from trunkline_ollama.adapter import OllamaAdapter
    from trunkline_ollama.model_listing import missing_models

    adapter = OllamaAdapter(section)
    try:
        available = await adapter.available()
    except ModelError as error:
        return HealthResult("warning", f"Ollama does not answer ({error.fault}).", _cure(error))
    finally:
        await adapter.aclose()
    if missing := missing_models([section.model], available):
        names = ", ".join(missing)
        if section.pull:
            return HealthResult("ok", f"{section.url} answers; it pulls {names} at the first use.")
        pulls = "; ".join(f"ollama pull {name}" for name in missing)
        return HealthResult("warning", f"{section.url} does not have the model {names}.", f"Run: {pulls}")
    if not available:
        return HealthResult("warning", f"{section.url} has no model.", "Run: ollama pull qwen3")
    return HealthResult("ok", f"{section.url} answers and lists {len(available)} models.")


def _cure(error: ModelError) -> str:
    match error.fault:
        case "authentication":
            return "Check the key: OLLAMA_API_KEY, or the variable that api_key in [adapters.ollama] names."
        case "unavailable" | "timeout":
            return "Start it: ollama serve. Or correct base_url in [adapters.ollama], or OLLAMA_HOST."
    return "Check that base_url in [adapters.ollama], or OLLAMA_HOST, names an Ollama server."
