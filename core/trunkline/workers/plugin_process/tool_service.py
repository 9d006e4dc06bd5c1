"""Serves the plugin's tools: lists them and runs their calls. The tools worker has checked each call before."""

import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectSendStream

from trunkline._util.batch import batched
from trunkline._util.paths import PathScope
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.models.client import CompleterBase
from trunkline.contracts.models.messages import Complete, Completion
from trunkline.contracts.plugins.messages import (
    HostCallAcknowledged,
    HostCallReply,
    ListPluginTools,
    ModelHostCall,
    PluginToolEnded,
    PluginToolReply,
    PluginTools,
    PluginToolText,
    RunPluginTool,
)
from trunkline.contracts.tools.messages import ToolProgress
from trunkline.contracts.tools.tool import Tool, ToolContext
from trunkline.errors import CompletionError, ToolError
from trunkline.plugins import Plugins
from trunkline.workers.plugin_process.host_calls import HostCallClient
from trunkline.workers.plugin_process.memory_pipe import PipeTransport
from trunkline.workers.plugin_process.sandbox_proxy import ProxySandbox
from trunkline_bus import Request, new_id

log = logging.getLogger(__name__)

PIECE = 16_000
"""Characters of a result per message."""

MAX_OUTPUT_CHARS = 16 * 1024 * 1024


class PluginToolService:
    """The tools of the plugin. ``life`` identifies this process."""

    def __init__(self, plugins: Plugins, life: str) -> None:
        self._plugins = plugins
        self._life = life
        self._tools = {owned.item.spec.name: owned for owned in plugins.tools()}
        self._calls: dict[str, HostCallClient] = {}

    async def list_tools(self, request: Request[ListPluginTools]) -> PluginTools:
        """Return all tools."""
        return PluginTools(life=self._life, tools=tuple(owned.item.spec for owned in self._tools.values()))

    async def receive_answer(self, request: Request[HostCallReply]) -> HostCallAcknowledged:
        """Pass the answer to a host call to the tool call that waits for it."""
        calls = self._calls.get(request.data.call)
        if calls is not None:
            calls.deliver(request.data)
        return HostCallAcknowledged()

    async def run(self, request: Request[RunPluginTool]) -> AsyncIterator[PluginToolReply]:
        """Run a tool. Yield its host calls, progress and output, then its end. The run is cancelled when the caller
        disconnects.
        """
        call = request.data
        owned = self._tools.get(call.name)
        if owned is None:
            yield PluginToolEnded(
                status="error",
                text=f"There is no longer a tool called {call.name!r}. Nothing was run.",
                kind="not_found",
            )
            return
        send, receive = anyio.create_memory_object_stream[PluginToolReply](64)
        calls = self._calls[call.call] = HostCallClient(send.send)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._carry_out, owned.owner, owned.item, call, calls, send)
                async with receive:
                    async for reply in receive:
                        yield reply
        finally:
            del self._calls[call.call]

    async def _carry_out(
        self,
        owner: str,
        tool: Tool,
        call: RunPluginTool,
        calls: HostCallClient,
        send: MemoryObjectSendStream[PluginToolReply],
    ) -> None:
        loads: list[str] = []
        derived: list[bool] = []
        async with send:
            context = ToolContext(
                block=call.block, conversation=call.conversation, turn=call.turn, call=call.call, actor=call.actor,
                workspace=Path(call.workspace), memory=Memory(PipeTransport(calls), call.block),
                model=ProxyCompleter(calls),
                sandbox=ProxySandbox(calls, Path(call.workspace)),
                reach=PathScope(tuple(map(Path, call.roots)), tuple(map(Path, call.closed))),
                report=_ProgressReporter(call.call, send), load=loads.extend,
                derived=lambda: derived.append(True),
            )  # fmt: skip
            with self._plugins.record_activity(owner, "tool"):
                ended, text = await _run_to_end(tool, context, call)
            for piece in batched(text, PIECE):
                await send.send(PluginToolText(text=piece))
            await send.send(
                msgspec.structs.replace(ended, loads=tuple(map(str, loads)), derived=any(derived))
            )


async def _run_to_end(tool: Tool, context: ToolContext, call: RunPluginTool) -> tuple[PluginToolEnded, str]:
    """Run the tool and return how it ended and its result."""
    try:
        text = await tool(context, call.arguments)
    except BaseException as error:
        if isinstance(error, anyio.get_cancelled_exc_class()):
            raise
        if isinstance(error, ToolError):
            return PluginToolEnded(status="error", text=str(error), kind=error.kind), ""
        number = new_id("incident")
        log.error("%s: the tool %s failed", number, call.name, exc_info=error)
        sentence = f"{call.name} failed unexpectedly. The log has the details under {number}."
        return PluginToolEnded(status="failed", text=sentence, kind="internal"), ""
    if not isinstance(text, str):
        sentence = f"{call.name} ran, but returned {type(text).__name__} instead of text."
        return PluginToolEnded(status="failed", text=sentence, kind="internal"), ""
    if len(text) > MAX_OUTPUT_CHARS:
        sentence = f"{call.name} ran, but its output of {len(text)} characters is too large."
        return PluginToolEnded(status="failed", text=sentence, kind="too_large"), ""
    return PluginToolEnded(status="ok"), text.encode(errors="replace").decode()


class _ProgressReporter:
    """Sends lines of progress. May be called from any thread; a line is dropped when the buffer is full."""

    def __init__(self, call: str, send: MemoryObjectSendStream[PluginToolReply]) -> None:
        self._call, self._send = call, send
        self._token = anyio.lowlevel.current_token()

    def __call__(self, note: str) -> None:
        reply = ToolProgress(call=self._call, note=str(note)[:500])
        with suppress(Exception):
            try:
                self._send.send_nowait(reply)
            except RuntimeError:
                anyio.from_thread.run_sync(self._send.send_nowait, reply)


class ProxyCompleter(CompleterBase):
    """The completer of an isolated plugin's tool: the tools worker asks the model."""

    def __init__(self, calls: HostCallClient) -> None:
        self._calls = calls

    async def ask(self, question: Complete) -> Completion:
        """Ask through a host call. Raises CompletionError."""
        answer = await self._calls.call(lambda number: ModelHostCall(number=number, question=question))
        if answer.error is not None:
            raise CompletionError(answer.code, answer.error)
        return msgspec.json.decode(answer.result, type=Completion)
