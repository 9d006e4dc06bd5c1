"""The messages between the tools worker and a plugin in a process of its own."""

from typing import Any, Literal

from trunkline.contracts.models.messages import Complete
from trunkline.contracts.tools.messages import ToolProgress, ToolSpec
from trunkline_bus import Payload


class ListPluginTools(Payload, frozen=True, kw_only=True, tag="plugin.tools.v1"):
    """Ask a plugin for its tools."""


class PluginTools(Payload, frozen=True, kw_only=True, tag="plugin.tool-list.v1"):
    """The tools of a plugin. ``life`` names the process, so that a new one is seen."""

    life: str
    tools: tuple[ToolSpec, ...] = ()


class RunPluginTool(Payload, frozen=True, kw_only=True, tag="plugin.run.v1"):
    """Run a tool of the plugin. Everything was checked; ``workspace`` is the block's folder, ``roots`` those beneath
    which absolute paths may lie, and ``closed`` what of them may not be touched."""

    call: str
    name: str
    arguments: dict[str, Any]
    block: str
    conversation: str
    turn: str
    actor: str
    workspace: str
    roots: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()


class PluginToolText(Payload, frozen=True, kw_only=True, tag="plugin.run-text.v1"):
    """A piece of the result."""

    text: str


class MemoryHostCall(Payload, frozen=True, kw_only=True, tag="plugin.memory-call.v1"):
    """A request of the tool to memory: ``operation`` is the name of its row, ``request`` the request as a text of JSON.

    Whatever block and actor the request names, it is made in those of the tool's call.
    """

    number: int
    operation: str
    request: str


class ModelHostCall(Payload, frozen=True, kw_only=True, tag="plugin.model-call.v1"):
    """A question of the tool to a model, for the block, conversation and turn of its call."""

    number: int
    question: Complete


class SandboxHostCall(Payload, frozen=True, kw_only=True, tag="plugin.sandbox-call.v1"):
    """A program that the tool wants run in the sandbox of its call, in the call's workspace if it is ``placed``;
    ``limits`` are those of ``trunkline.SandboxLimits``. Without words it only asks whether one can be run."""

    number: int
    argv: tuple[str, ...] = ()
    placed: bool = True
    env: dict[str, str] = {}
    folder: str = ""
    stdin: bytes = b""
    limits: dict[str, Any] = {}


class PluginToolEnded(Payload, frozen=True, kw_only=True, tag="plugin.run-ended.v1"):
    """The end of the tool: ``ok``; ``error`` with the tool's own text for the model; ``failed`` with a sentence.

    ``kind`` is that of the error, one of ``TOOL_ERROR_KINDS``. ``loads`` are the names of tools that the model is to
    have from now on. ``derived``: the result repeats what memory holds.
    """

    status: Literal["ok", "error", "failed"]
    text: str = ""
    kind: str = ""
    loads: tuple[str, ...] = ()
    derived: bool = False


PluginToolReply = (
    ToolProgress | PluginToolText | MemoryHostCall | ModelHostCall | SandboxHostCall | PluginToolEnded
)


class HostCallReply(Payload, frozen=True, kw_only=True, tag="plugin.host-reply.v1"):
    """The reply to a host call: ``result`` as JSON text, or the text of an error with its code, or its kind."""

    call: str
    number: int
    result: str = ""
    error: str | None = None
    code: str = ""


class HostCallAcknowledged(Payload, frozen=True, kw_only=True, tag="plugin.host-reply-ack.v1"):
    """The reply has reached its tool."""
