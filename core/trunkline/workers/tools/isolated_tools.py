"""Tools of plugins in processes of their own, as the catalogue sees them: only execution is there."""

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
from trunkline.contracts.sandbox.sandbox import SandboxLimits
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
from trunkline.plugins import Owned, PluginState
from trunkline.workers.tools.error_outcomes import VERIFY
from trunkline_bus import Bus, BusError, CallTimeout, NoResponders

log = logging.getLogger(__name__)

POLL_SECONDS = 2.0
"""Seconds between two looks at which tools a plugin has."""

MISSED = 3
"""Looks without an answer after which its tools are taken out of the catalogue."""

IDLE_TIMEOUT = 5.0
"""Seconds after which a process that says nothing while it runs a tool counts as dead."""

LARGEST_OUTPUT = 16 * 1024 * 1024
"""Characters of a result that are taken from a process of its own."""

LARGEST_QUESTION = 100_000
"""Bytes that may go to a plugin in one message: the bucket for larger ones is closed to it."""

MOST_TOOLS = 200

MOST_OUT = 30_000
"""Bytes of each stream of a program that go to a plugin; of more the beginning and the end."""


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
        """Have it run there.

        Raises:
            ToolError: the tool's own, or the process is not there.
            OutcomeUnknown: the process died over it, and the tool may have had its effect.
        """
        request = RunPluginTool(
            call=context.call, name=self.spec.name, arguments=arguments, block=context.block,
            conversation=context.conversation, turn=context.turn, actor=context.actor, workspace=str(context.workspace),
            roots=tuple(map(str, context.reach.roots)), closed=tuple(map(str, context.reach.closed)),
        )  # fmt: skip
        if len(msgspec.json.encode(request)) > LARGEST_QUESTION:
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
        except (CallTimeout, BusError) as error:  # a fault of the process too may have come after the effect
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
                        if size > LARGEST_OUTPUT:
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
        if len(answer.result) > LARGEST_QUESTION:
            said = "That is too large for a plugin in a process of its own."
            answer = HostCallReply(
                call=answer.call, number=answer.number, error=said, code=ErrorCode.TOO_LARGE
            )
        try:
            await self._bus.call(HOST_CALL_REPLY, answer, plugin=self._plugin)
        except BusError as error:
            raise self._lost() from error  # it asked in the middle of its work

    def _cut_off(self, text: str, kind: ToolErrorKind) -> ToolError:
        return ToolError(text, kind=kind) if self.spec.repeatable else OutcomeUnknown(f"{text} {VERIFY}")

    def _lost(self) -> ToolError:
        said = f"The process of the plugin {self._plugin} ended, or broke, while it ran {self.spec.name}."
        if self.spec.repeatable:
            return ToolError(
                f"{said} It changed nothing that matters, so it may be called again.", kind="unavailable"
            )
        return OutcomeUnknown(f"The outcome of {self.spec.name} is unknown. {said} {VERIFY}")


async def _answer_model_call(wish: ModelHostCall, context: ToolContext) -> HostCallReply:
    """Ask a model what the tool wants to know."""
    wanted = msgspec.structs.asdict(wish.question)
    del wanted["actor"]  # that of the call counts
    try:
        done = await context.model.complete(wanted.pop("messages"), **wanted)
    except CompletionError as error:
        return HostCallReply(call=context.call, number=wish.number, error=str(error), code=error.code)
    return HostCallReply(call=context.call, number=wish.number, result=msgspec.json.encode(done).decode())


async def _answer_program_call(
    wish: SandboxHostCall, context: ToolContext, hosting: PluginHostSettings
) -> HostCallReply:
    """Run a program that the tool wants, in the sandbox, within the permissions of its call and what the owner lets the
    plugin take."""
    try:
        limits = msgspec.convert(wish.limits, SandboxLimits)
        if not wish.argv:
            return HostCallReply(
                call=context.call, number=wish.number, error=await context.sandbox.unavailable()
            )
        done = await context.sandbox.run(
            wish.argv,
            workspace=context.workspace if wish.placed else None,
            env=wish.env,
            folder=wish.folder,
            stdin=wish.stdin,
            limits=_within(limits, hosting),
        )
    except (ToolError, msgspec.ValidationError) as error:
        kind = error.kind if isinstance(error, ToolError) else "invalid_arguments"
        return HostCallReply(call=context.call, number=wish.number, error=str(error), code=kind)
    return HostCallReply(call=context.call, number=wish.number, result=msgspec.json.encode(done).decode())


def _within(limits: SandboxLimits, hosting: PluginHostSettings) -> SandboxLimits:
    return replace(
        limits,
        timeout=min(limits.timeout, hosting.isolation_timeout),
        memory=min(limits.memory, hosting.isolation_memory),
        cpus=min(limits.cpus, hosting.isolation_cpus),
        processes=min(limits.processes, hosting.isolation_processes),
        output=min(limits.output, MOST_OUT),
        repository="",
    )


async def _answer_memory_call(call: MemoryHostCall, context: ToolContext) -> HostCallReply:
    """Send what the tool asks of memory, as if it ran here: its transport authorizes the request, and names its block,
    its actor and its turn."""
    operation = next((one for one in MEMORY_OPERATIONS if one.name == call.operation), None)
    try:
        if operation is None or operation.scope is None:
            raise ToolError(
                f"{call.operation[:80]!r} is no operation of memory that a plugin may call.",
                kind="permission_denied",
            )
        request = msgspec.json.decode(call.request, type=operation.request)
        reply = await context.memory.transport.call(operation, request)
    except ToolError as error:
        return HostCallReply(call=context.call, number=call.number, error=str(error), code=error.kind)
    except (msgspec.DecodeError, RecursionError) as error:
        said = f"This is no request for memory: {error}."
        return HostCallReply(call=context.call, number=call.number, error=said, code="invalid_arguments")
    return HostCallReply(call=context.call, number=call.number, result=msgspec.json.encode(reply).decode())


class IsolatedToolIndex:
    """Which tools the plugins in processes of their own have now. ``version`` counts how often that changed."""

    def __init__(self, bus: Bus, plugins: tuple[PluginState, ...], config: Config) -> None:
        self.version = 0
        self._config = config
        self._bus = bus
        self._plugins = plugins
        self._told: dict[str, PluginTools] = {}

    def tools(self) -> tuple[Owned[Tool], ...]:
        """The tools of those that answer, in the order of the plugins."""
        return tuple(
            Owned(
                state.owner,
                IsolatedTool(spec, state.name, self._bus, self._config.plugin_host(state.name, state.owner)),
            )
            for state in self._plugins
            if state.name in self._told
            for spec in self._told[state.name].tools[:MOST_TOOLS]
        )

    async def poll(self) -> None:
        """Ask each plugin every few seconds, each by itself. Runs until cancelled."""
        async with anyio.create_task_group() as tasks:
            for state in self._plugins:
                tasks.start_soon(self._poll_plugin, state.name)

    async def _poll_plugin(self, name: str) -> None:
        missed = 0
        while True:
            told = await self._list_plugin_tools(name)
            missed = 0 if told is not None else missed + 1
            if told is not None and told != self._told.get(name):
                self._told[name] = told
                self.version += 1
                log.info("plugin %s serves from its own process; its tools: %d", name, len(told.tools))
            elif missed == MISSED and self._told.pop(name, None) is not None:
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
