"""The life cycle of the process: applies the limits, loads the plugin, and serves its tools and channels until a
stop.
"""

import logging
from contextlib import AsyncExitStack

import anyio
import msgspec

import trunkline
from trunkline.config import Config
from trunkline.contracts.plugins.subjects import HOST_CALL_REPLY, LIST_PLUGIN_TOOLS, RUN_PLUGIN_TOOL
from trunkline.errors import PluginError
from trunkline.plugins import Plugins, PluginState
from trunkline.runtime.plugin_supervisor import EXIT_UNUSABLE
from trunkline.workers.channels.channel_supervisor import supervise_channel
from trunkline.workers.plugin_process.resource_limits import apply_limits
from trunkline.workers.plugin_process.tool_service import PluginToolService
from trunkline_bus import BusSettings, Service, connect, new_id
from trunkline_bus.task_group import background_tasks

log = logging.getLogger(__name__)

CLAIM_THRESHOLD = 8 * 1024 * 1024
"""Bytes up to which a message is sent whole: the bucket of large bodies is closed to plugins."""

DRAIN_SECONDS = 10.0


class PluginUnusable(PluginError):
    """The plugin cannot be used. A restart does not help."""

    exit_status = EXIT_UNUSABLE


async def serve_plugin(config: Config, name: str, bus: BusSettings, stop: anyio.Event) -> None:
    """Serve one plugin until ``stop`` is set.

    Raises:
        PluginUnusable: the plugin is not installed, does not load, is in quarantine, or cannot be served by this
            process.
    """
    hosting = config.plugin_host(name)
    apply_limits(hosting)
    plugins = Plugins.load(config, only=name)
    state = _state(plugins, name)
    settings = msgspec.structs.replace(bus, name=new_id("plugin"), claim_threshold=CLAIM_THRESHOLD)
    async with AsyncExitStack() as stack:
        stack.callback(plugins.activity_log.close)
        connection = await stack.enter_async_context(connect(settings))
        service = Service(connection, f"trunkline-plugin-{name}", trunkline.__version__, f"plugin-{name}", "")
        tool_service = PluginToolService(plugins, settings.name)
        await service.add(LIST_PLUGIN_TOOLS, tool_service.list_tools, plugin=name)
        await service.add(RUN_PLUGIN_TOOL, tool_service.run, limit=256, plugin=name)
        await service.add(HOST_CALL_REPLY, tool_service.receive_answer, limit=256, plugin=name)
        tasks = await stack.enter_async_context(background_tasks())
        channel_names = {*hosting.channels_of(state.name)} & {*config.settings.channels.enabled}
        for owned in plugins.channels():
            if owned.item.name in channel_names:
                tasks.start_soon(supervise_channel, owned, plugins, connection, plugins.sentences())
        log.info("the process of plugin %s is ready", name)
        await stop.wait()
        plugins.activity_log.mark_leaving()
        with anyio.move_on_after(DRAIN_SECONDS):
            await service.close()
        tasks.cancel_scope.cancel()


def _state(plugins: Plugins, name: str) -> PluginState:
    for state in plugins.report.plugins:
        if state.status == "loaded":
            return state
        raise PluginUnusable(f"The plugin {name} cannot be served: {state.reason}", hint=state.hint)
    raise PluginUnusable(
        f"There is no plugin {name!r}.", hint='"trunkline plugins list" shows what is installed.'
    )
