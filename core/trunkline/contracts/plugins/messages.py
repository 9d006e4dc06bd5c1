"""The messages between the tools worker and an isolated plugin, which runs in a separate process."""

from typing import Any, Literal

from trunkline.contracts.models.messages import Complete
from trunkline.contracts.tools.messages import ToolProgress, ToolSpec
from trunkline_bus import Payload


class ListPluginTools(Payload, frozen=True, kw_only=True, tag="plugin.tools.v1"):
    """Ask a plugin for its tools."""


class PluginTools(Payload, frozen=True, kw_only=True, tag="plugin.tool-list.v1"):
    """The tools of a plugin. ``life`` identifies the process, so that a restart is noticed."""

    life: str
    tools: tuple[ToolSpec, ...] = ()


class RunPluginTool(Payload, frozen=True, kw_only=True, tag="plugin.run.v1"):
    """Run a tool of the plugin. The tools worker has checked the call. ``workspace`` is the block's folder. ``roots``
    are the folders below which absolute paths are permitted, ``closed`` the paths among them that are denied.
    """

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
    """A part of the result."""

    text: str


class MemoryHostCall(Payload, frozen=True, kw_only=True, tag="plugin.memory-call.v1"):
    """A request of the tool to memory. ``operation`` is the name of the memory operation, ``request`` the request as
    JSON text.

    The tools worker replaces the request's block and actor with those of the tool's call.
    """

    number: int
    operation: str
    request: str


class ModelHostCall(Payload, frozen=True, kw_only=True, tag="plugin.model-call.v1"):
    """A request of the tool to a model, on behalf of the block, conversation and turn of the tool's call."""

    number: int
    question: Complete


class SandboxHostCall(Payload, frozen=True, kw_only=True, tag="plugin.sandbox-call.v1"):
    """A request of the tool to run a program in the sandbox of its call. ``placed`` runs the program in the call's
    workspace. ``limits`` are the fields of ``trunkline.SandboxLimits``. ``show_output`` shows the output to people
    while the program runs. An empty ``argv`` only asks whether a program can be run.
    """

    number: int
    argv: tuple[str, ...] = ()
    placed: bool = True
    env: dict[str, str] = {}
    folder: str = ""
    stdin: bytes = b""
    limits: dict[str, Any] = {}
    show_output: bool = False


class PluginToolEnded(Payload, frozen=True, kw_only=True, tag="plugin.run-ended.v1"):
    """The end of the tool: ``ok``; ``error`` with the tool's text for the model; ``failed`` with a fixed sentence.

    ``kind`` is the kind of the error, one of ``TOOL_ERROR_KINDS``. ``loads`` names tools that the model receives from
    the next step on. ``derived`` is true if the result repeats what memory holds.
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
    """The reply to a host call: ``result`` as JSON text, or ``error`` with the text of an error and ``code`` with its
    code or kind.
    """

    call: str
    number: int
    result: str = ""
    error: str | None = None
    code: str = ""


class HostCallAcknowledged(Payload, frozen=True, kw_only=True, tag="plugin.host-reply-ack.v1"):
    """The reply has reached the tool."""
