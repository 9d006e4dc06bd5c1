"""The plugin: declares its section, its tools and its checks, and nothing else."""

from collections.abc import Iterable

import trunkline
from trunkline_web.settings import WebSettings


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    return [trunkline.ConfigSection("plugins", "web", WebSettings)]


@trunkline.hookimpl
def trunkline_tools(settings: trunkline.PluginSettings) -> Iterable[trunkline.Tool]:
    """``web_search``, ``fetch_webpage`` and ``web_crawler``."""
    from trunkline_web import crawler, fetch_tool, search_tool

    section = settings.section(WebSettings)
    return [search_tool.search_tool(section), fetch_tool.fetch_tool(section), crawler.crawler_tool(section)]


@trunkline.hookimpl
def trunkline_health_checks(settings: trunkline.PluginSettings) -> Iterable[trunkline.HealthCheck]:
    """``web.search``: whether a search engine is configured; ``web.answers``, online: whether it answers."""
    from trunkline_web.health import answer_check, search_check

    section = settings.section(WebSettings)
    return [
        trunkline.HealthCheck("web.search", search_check(section)),
        trunkline.HealthCheck("web.answers", answer_check(section), online=True),
    ]
