"""The plugin: declares the section, and the adapter when an address is configured."""

from collections.abc import Iterable

from trunkline import ConfigSection, PluginSettings, hookimpl
from trunkline.api.model import ModelAdapter
from trunkline_engine.settings import EngineSettings


@hookimpl
def trunkline_config() -> Iterable[ConfigSection]:
    return [ConfigSection("adapters", "engine", EngineSettings)]


@hookimpl
def trunkline_models(settings: PluginSettings) -> Iterable[ModelAdapter]:
    section = settings.section(EngineSettings)
    if not section.url:
        return []
    from trunkline_engine.adapter import EngineAdapter

    return [EngineAdapter(section)]
