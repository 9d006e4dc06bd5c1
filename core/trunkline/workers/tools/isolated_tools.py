"""Tools of isolated plugins in the catalogue. The plugin's process runs the tool; the tools worker does everything
else.
"""

import logging
from dataclasses import replace
from typing import Any

import anyio
import msgspec

from trunkline.config import Config
from trunkline.config.plugin_host import PluginHostSettings
from trunkline.contracts.memory.subjects import MEMORY_OPERATIONS
from trunkline.contracts.plugins.messages import (
    HostCallReply,
    ListPluginTools,
    MemoryHostCall,
    ModelHostCall,
    PluginToolEnded,
    PluginTools,
    PluginToolText,
    RunPluginTool,
    SandboxHostCall,
)
from trunkline.contracts.plugins.subjects import HOST_CALL_REPLY, LIST_PLUGIN_TOOLS, RUN_PLUGIN_TOOL
from trunkline.contracts.sandbox.program_request import SandboxLimits
from trunkline.contracts.tools.messages import ToolProgress, ToolSpec
from trunkline.contracts.tools.tool import Tool, ToolContext
from trunkline.errors import (
    CompletionError,
    ErrorCode,
    OutcomeUnknown,
    ToolError,
    ToolErrorKind,
    error_kind_named,
)
from trunkline.plugins import OwnedItem, PluginState
from trunkline.workers.tools.error_outcomes import VERIFY
from trunkline_bus import Bus, BusError, CallTimeout, NoResponders

log = logging.getLogger(__name__)

POLL_SECONDS = 2.0
"""Seconds between two readings of a plugin's tools."""

MAX_MISSED = 3
"""The number of missed readings after which a plugin's tools leave the catalogue."""

IDLE_TIMEOUT = 5.0
"""Seconds without a message after which a process that runs a tool counts as dead."""

MAX_OUTPUT_CHARS = 16 * 1024 * 1024
"""Largest number of characters of a result that is accepted from a plugin's process."""

MAX_MESSAGE_BYTES = 100_000
"""Largest number of bytes of one message to a plugin. The bucket for larger ones is closed to plugins."""

MAX_TOOLS = 200

MAX_STREAM_BYTES = 30_000
"""Largest number of bytes of each output stream of a program that go to a plugin: the beginning and the
end."""


class IsolatedTool(Tool):
    """A tool that runs in the process of its plugin."""

    def __init__(self, spec: ToolSpec, plugin: str, bus: Bus, hosting: PluginHostSettings) -> None:
        self.spec = msgspec.structs.replace(
            spec, source="native:unknown", timeout=min(spec.timeout, hosting.isolation_timeout)
        )
        self._plugin = plugin
        self._bus = bus
        self._hosting = hosting

    async def __call__(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """Run the tool in the plugin's process.

        Raises:
            ToolError: the tool raised it, or the process does not answer.
            OutcomeUnknown: the process ended during the call, and the tool may have had its effect.
        """
        request = RunPluginTool(
            call=context.call, name=self.spec.name, arguments=arguments, block=context.block,
            conversation=context.conversation, turn=context.turn, actor=context.actor, workspace=str(context.workspace),
            roots=tuple(map(str, context.reach.roots)), closed=tuple(map(str, context.reach.closed)),
        )  # fmt: skip
        if len(msgspec.json.encode(request)) > MAX_MESSAGE_BYTES:
            raise ToolError(
                f"The arguments of {self.spec.name} are too large for a plugin in its own process.",
                kind="too_large",
            )
        try:
            return await self._run(request, context)
        except NoResponders as error:
            raise ToolError(
                f"{self.spec.name} was not run: the process of the plugin {self._plugin} does not answer.",
                kind="unavailable",
            ) from error
        except (CallTimeout, BusError) as error:  # an error of the process may also follow the effect
            raise self._lost() from error

    async def _run(self, request: RunPluginTool, context: ToolContext) -> str:
        parts: list[str] = []
        size = 0
        async with self._bus.call_streaming(
            RUN_PLUGIN_TOOL, request, idle_timeout=IDLE_TIMEOUT, plugin=self._plugin
        ) as replies:
            async for reply in replies:
                match reply:
                    case PluginToolText(text=text):
                        size += len(text)
                        if size > MAX_OUTPUT_CHARS:
                            raise ToolError(
                                f"{self.spec.name} ran, but its output is too large.", kind="too_large"
                            )
                        parts.append(text)
                    case ToolProgress(note=note):
                        context.report(note)
                    case MemoryHostCall():
                        await self._tell(await _answer_memory_call(reply, context))
                    case ModelHostCall():
                        await self._tell(await _answer_model_call(reply, context))
                    case SandboxHostCall():
                        await self._tell(await _answer_program_call(reply, context, self._hosting))
                    case PluginToolEnded(status="ok", loads=loads, derived=derived):
                        context.load(loads)
                        if derived:
                            context.derived()
                        return "".join(parts)
                    case PluginToolEnded(status="error", text=text, kind=kind):
                        raise ToolError(text, kind=error_kind_named(kind))
                    case PluginToolEnded(text=text, kind=kind):
                        raise self._cut_off(text, error_kind_named(kind))
        raise self._lost()

    async def _tell(self, answer: HostCallReply) -> None:
        if len(answer.result) > MAX_MESSAGE_BYTES:
            text_ = "The reply is too large for a plugin in its own process."
            answer = HostCallReply(
                call=answer.call, number=answer.number, error=text_, code=ErrorCode.TOO_LARGE
            )
        try:
            await self._bus.call(HOST_CALL_REPLY, answer, plugin=self._plugin)
        except BusError as error:
            raise self._lost() from error  # the tool had already begun

    def _cut_off(self, text: str, kind: ToolErrorKind) -> ToolError:
        return ToolError(text, kind=kind) if self.spec.repeatable else OutcomeUnknown(f"{text} {VERIFY}")

    def _lost(self) -> ToolError:
        text_ = f"The process of the plugin {self._plugin} ended or failed while it ran {self.spec.name}."
        if self.spec.repeatable:
            return ToolError(f"{text_} The tool is safe to repeat: call it again.", kind="unavailable")
        return OutcomeUnknown(f"The outcome of {self.spec.name} is unknown. {text_} {VERIFY}")


async def _answer_model_call(request: ModelHostCall, context: ToolContext) -> HostCallReply:
    """Answer a host call that asks a model a question."""
    arguments = msgspec.structs.asdict(request.question)
    for name in ("actor", "budget_turn"):  # those of the call itself are used
        del arguments[name]
    try:
        done = await context.model.complete(arguments.pop("messages"), **arguments)
    except CompletionError as error:
        return HostCallReply(call=context.call, number=request.number, error=str(error), code=error.code)
    return HostCallReply(call=context.call, number=request.number, result=msgspec.json.encode(done).decode())


async def _answer_program_call(
    request: SandboxHostCall, context: ToolContext, hosting: PluginHostSettings
) -> HostCallReply:
    """Answer a host call that runs a program in the sandbox, within the permissions of the tool call and the
    limits of the plugin host."""
    try:
        limits = msgspec.convert(request.limits, SandboxLimits)
        if not request.argv:
            return HostCallReply(
                call=context.call, number=request.number, error=await context.sandbox.unavailable()
            )
        done = await context.sandbox.run(
            request.argv,
            workspace=context.workspace if request.placed else None,
            env=request.env,
            folder=request.folder,
            stdin=request.stdin,
            limits=_within(limits, hosting),
            show_output=request.show_output,
        )
    except (ToolError, msgspec.ValidationError) as error:
        kind = error.kind if isinstance(error, ToolError) else "invalid_arguments"
        return HostCallReply(call=context.call, number=request.number, error=str(error), code=kind)
    return HostCallReply(call=context.call, number=request.number, result=msgspec.json.encode(done).decode())


def _within(limits: SandboxLimits, hosting: PluginHostSettings) -> SandboxLimits:
    return replace(
        limits,
        timeout=min(limits.timeout, hosting.isolation_timeout),
        memory=min(limits.memory, hosting.isolation_memory),
        cpus=min(limits.cpus, hosting.isolation_cpus),
        processes=min(limits.processes, hosting.isolation_processes),
        output=min(limits.output, MAX_STREAM_BYTES),
        repository="",
    )


async def _answer_memory_call(call: MemoryHostCall, context: ToolContext) -> HostCallReply:
    """Answer a host call to memory as if the tool ran in the tools worker: the call's transport authorizes the
    request and sets block, actor and turn.
    """
    operation = next((one for one in MEMORY_OPERATIONS if one.name == call.operation), None)
    try:
        if operation is None or operation.extent is None:
            raise ToolError(
                f"A plugin may not call the memory operation {call.operation[:80]!r}.",
                kind="permission_denied",
            )
        request = msgspec.json.decode(call.request, type=operation.request)
        reply = await context.memory.transport.call(operation, request)
    except ToolError as error:
        return HostCallReply(call=context.call, number=call.number, error=str(error), code=error.kind)
    except (msgspec.DecodeError, RecursionError) as error:
        text_ = f"The memory request is not valid: {error}."
        return HostCallReply(call=context.call, number=call.number, error=text_, code="invalid_arguments")
    return HostCallReply(call=context.call, number=call.number, result=msgspec.json.encode(reply).decode())


class IsolatedToolIndex:
    """The current tools of isolated plugins. ``version`` increases with each change."""

    def __init__(self, bus: Bus, plugins: tuple[PluginState, ...], config: Config) -> None:
        self.version = 0
        self._config = config
        self._bus = bus
        self._plugins = plugins
        self._plugin_tools: dict[str, PluginTools] = {}

    def tools(self) -> tuple[OwnedItem[Tool], ...]:
        """Return the tools of the plugins that answer, in the order of the plugins."""
        return tuple(
            OwnedItem(
                state.owner,
                IsolatedTool(spec, state.name, self._bus, self._config.plugin_host(state.name, state.owner)),
            )
            for state in self._plugins
            if state.name in self._plugin_tools
            for spec in self._plugin_tools[state.name].tools[:MAX_TOOLS]
        )

    async def poll(self) -> None:
        """Read the tools of each plugin repeatedly, until cancelled."""
        async with anyio.create_task_group() as tasks:
            for state in self._plugins:
                tasks.start_soon(self._poll_plugin, state.name)

    async def _poll_plugin(self, name: str) -> None:
        missed = 0
        while True:
            tools = await self._list_plugin_tools(name)
            missed = 0 if tools is not None else missed + 1
            if tools is not None and tools != self._plugin_tools.get(name):
                self._plugin_tools[name] = tools
                self.version += 1
                log.info("plugin %s serves from its own process; its tools: %d", name, len(tools.tools))
            elif missed == MAX_MISSED and self._plugin_tools.pop(name, None) is not None:
                self.version += 1
                log.warning("plugin %s does not answer; its tools are out of the catalogue", name)
            await anyio.sleep(POLL_SECONDS if missed == 0 else POLL_SECONDS / 10)

    async def _list_plugin_tools(self, name: str) -> PluginTools | None:
        try:
            return await self._bus.call(
                LIST_PLUGIN_TOOLS, ListPluginTools(), plugin=name, timeout=POLL_SECONDS
            )
        except BusError:
            return None
