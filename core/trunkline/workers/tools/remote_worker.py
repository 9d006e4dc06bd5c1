"""The tools worker of a remote: the same work, asked by the hub's tools worker alone, with a ledger of its own.

It checks schema, paths, guards and sandboxes as any tools worker does. Which block may use it is the hub's to decide,
since it can read no memory here.
"""

from collections.abc import AsyncIterator
from typing import cast

from anyio.abc import TaskGroup
from msgspec.structs import replace

from trunkline.contracts.documents.reader import Documents, NoDocuments
from trunkline.contracts.memory.store import Memory, NoMemory
from trunkline.contracts.models.completer import Completer, NoModel
from trunkline.contracts.policies.messages import PermissionTable
from trunkline.contracts.tools.messages import (
    CallTool,
    ListTools,
    ToolCatalogue,
    ToolOutcome,
    ToolReply,
    ToolSpec,
)
from trunkline.contracts.tools.person import Nobody, Person
from trunkline.contracts.tools.planning import NoPlanning, Planning
from trunkline.contracts.tools.subjects import CANCEL_CALL, REMOTE_CALL_TOOL, REMOTE_LIST_TOOLS
from trunkline.contracts.tools.tool import Tool
from trunkline.documents.tool_documents import OpenFiles
from trunkline.runtime.remotes.enrolment import read_enrolment
from trunkline.workers.tools.block_tool_limits import BlockToolLimits
from trunkline.workers.tools.call_registry import ActiveCall
from trunkline.workers.tools.owner_policies import OwnerPolicies
from trunkline.workers.tools.result_store import ResultStore
from trunkline.workers.tools.worker import MOST_ASKING, ToolsWorker
from trunkline_bus import Request

LARGEST_OUTPUT = 1024 * 1024
"""Bytes of a result that travel to the hub in one message, however they are escaped."""


class RemoteToolsWorker(ToolsWorker):
    """Answers ``remote.list`` and ``remote.call`` under its own name."""

    async def answer(self) -> None:
        """Hear cancels, and answer the hub."""
        context, name = self.context, read_enrolment(self.context.home.hub).name
        await context.bus.subscribe(CANCEL_CALL, self._cancel)
        await context.service.add(REMOTE_LIST_TOOLS, self._list_for_hub, remote=name)
        await context.service.add(REMOTE_CALL_TOOL, self._call_for_hub, limit=MOST_ASKING, remote=name)

    async def limits_of(self, block: str) -> BlockToolLimits:
        """None: the hub has checked."""
        return BlockToolLimits()

    async def table_of(self, block: str) -> PermissionTable:
        """What this host's own configuration permits. Its questions would reach nobody: people are asked at the hub."""
        return replace(self.context.config.settings.permissions, approvals="none")

    async def wait_for_policies(self, block: str) -> None:
        """Nothing that could be away: the hub judges."""

    async def owner_policies(self) -> OwnerPolicies:
        """None: those are the hub's."""
        return ()

    def platform_tools(self, results: ResultStore | None) -> tuple[Tool, ...]:
        """None: the hub has them."""
        return ()

    def make_result_store(self) -> None:
        """None: the hub cuts them."""

    def memory_of(self, call: CallTool) -> Memory:
        """None: it is the hub's, and nothing here may ask it."""
        return cast(Memory, NoMemory())

    def model_of(self, call: CallTool) -> Completer:
        """None: it can ask nothing of the hub."""
        return NoModel()

    def start_cleanup(self, tasks: TaskGroup) -> None:
        """Nothing: memory is the hub's."""

    async def watch_folders(self) -> None:
        """Nothing: memory is the hub's."""

    def documents_of(self, call: CallTool, files: OpenFiles, memory: Memory) -> Documents:
        """None: those are the hub's."""
        return NoDocuments()

    def person_of(self, run: ActiveCall, spec: ToolSpec) -> Person:
        """None: the hub has the channels, and would take a question for a call that was not run."""
        return Nobody()

    def planning_of(self, call: CallTool) -> Planning:
        """None: the hub holds the agent to it."""
        return NoPlanning()

    async def _list_for_hub(self, request: Request[ListTools]) -> ToolCatalogue:
        return (await self._shelf.current()).for_block(BlockToolLimits(), request.data.version)

    async def _call_for_hub(self, request: Request[CallTool]) -> AsyncIterator[ToolReply]:
        async for reply in self._call_untrusted(request):
            yield _bounded(reply)


def _bounded(reply: ToolReply) -> ToolReply:
    size = len(reply.output.encode()) if isinstance(reply, ToolOutcome) else 0
    if size <= LARGEST_OUTPUT or not isinstance(reply, ToolOutcome):
        return reply
    text = f"The tool ran, but its result of {size} bytes is too large to send from this host."
    return replace(reply, status="error", output=text, error_kind="too_large")
