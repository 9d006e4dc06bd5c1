"""The endpoints of plugins in processes of their own.

``{plugin}`` is who answers: its credentials let it hear its own name and nobody else's.
"""

from trunkline.contracts.plugins.messages import (
    Heard,
    ListOwnTools,
    MemoryAnswer,
    OwnTools,
    RunReply,
    RunTool,
)
from trunkline_bus import (
    Endpoint,
    Subject,
)

PLUGIN_TOOLS = Endpoint(
    "plugin.tools", Subject("trunkline.x.{plugin}.tools.list"), ListOwnTools, OwnTools, traced=False,
    doc="The tools of a plugin that runs in a process of its own.",
)  # fmt: skip
PLUGIN_RUN: Endpoint[RunTool, RunReply] = Endpoint(
    "plugin.run", Subject("trunkline.x.{plugin}.tools.run"), RunTool, RunReply, streaming=True,  # type: ignore[arg-type]
    doc="Run a checked call: signs of life, wishes about memory, pieces of the result, the end.",
)  # fmt: skip
PLUGIN_MEMORY = Endpoint(
    "plugin.memory", Subject("trunkline.x.{plugin}.tools.memory"), MemoryAnswer, Heard, traced=False,
    doc="The answer to what a running tool wants of memory or of a model.",
)  # fmt: skip
