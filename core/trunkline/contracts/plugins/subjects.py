"""The endpoints of isolated plugins, which run in separate processes.

``{plugin}`` is the plugin that answers. A plugin's credentials permit it to subscribe to its own name only.
"""

from trunkline.contracts.plugins.messages import (
    HostCallAcknowledged,
    HostCallReply,
    ListPluginTools,
    PluginToolReply,
    PluginTools,
    RunPluginTool,
)
from trunkline_bus import (
    Endpoint,
    Subject,
)

LIST_PLUGIN_TOOLS = Endpoint(
    "plugin.tools", Subject("trunkline.x.{plugin}.tools.list"), ListPluginTools, PluginTools, traced=False,
    doc="The tools of a plugin that runs in a process of its own.",
)  # fmt: skip
RUN_PLUGIN_TOOL: Endpoint[RunPluginTool, PluginToolReply] = Endpoint(
    "plugin.run", Subject("trunkline.x.{plugin}.tools.run"), RunPluginTool, PluginToolReply, streaming=True,  # type: ignore[arg-type]
    doc="Run a checked call. The replies are heartbeats, calls of the host, parts of the result, and the end.",
)  # fmt: skip
HOST_CALL_REPLY = Endpoint(
    "plugin.memory", Subject("trunkline.x.{plugin}.tools.memory"), HostCallReply, HostCallAcknowledged, traced=False,
    doc="The answer to a host call of a running tool.",
)  # fmt: skip
