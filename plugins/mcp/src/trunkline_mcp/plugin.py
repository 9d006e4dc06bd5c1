"""The plugin: the host as a source of tools, its check, ``trunkline mcp`` and ``/x/trunkline-mcp``. Loads the SDK when
something is used."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import trunkline
from trunkline.api.hooks import ToolsSettings
from trunkline.api.tool import ToolSource

if TYPE_CHECKING:
    import click

    from trunkline.api.gateway import HttpRoute


@trunkline.hookimpl
def trunkline_tool_sources(settings: trunkline.PluginSettings) -> Iterable[ToolSource]:
    """The tools of all servers that ``mcp.json`` names."""
    from trunkline_mcp.host import McpHost

    return [McpHost(settings.home, settings.section(ToolsSettings).workspaces)]


@trunkline.hookimpl
def trunkline_health_checks(settings: trunkline.PluginSettings) -> Iterable[trunkline.HealthCheck]:
    """``mcp.servers``: what is wrong in the files, and which servers are not connected."""
    from trunkline_mcp.health import server_check

    return [trunkline.HealthCheck("mcp.servers", server_check(settings.home))]


@trunkline.hookimpl
def trunkline_http_routes(settings: trunkline.PluginSettings) -> "Iterable[HttpRoute]":
    """``/x/trunkline-mcp``: the servers for the web app."""
    from trunkline_mcp.http_routes import ServerRoutes

    return ServerRoutes(settings.home).routes()


@trunkline.hookimpl
def trunkline_commands(settings: trunkline.PluginSettings) -> "Iterable[click.Command]":
    """``trunkline mcp``."""
    from trunkline_mcp.commands import group_of

    return [group_of(settings.home)]
