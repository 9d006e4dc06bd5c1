"""A block as another agent may use it: every call and every look into memory passes the tools worker's dispatch.

Knows the bus and no protocol. The other agent acts under a name of its own (``agent:NAME``), so that the owner's
policies, the effect ledger and history tell it from the block's own agent. It speaks on subjects of that name.
"""

import copy
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio

import trunkline
from trunkline import ToolOutcome, new_id
from trunkline.api.bus import Bus, key_of
from trunkline.api.gateway import Identity
from trunkline.api.model import ActorPermissions
from trunkline.api.text import unwrap_tool_result
from trunkline.api.tool import (
    DELEGATED_CALL_TOOL,
    DELEGATED_CANCEL_CALL,
    DELEGATED_LIST_TOOLS,
    CallTool,
    CancelCall,
    ListTools,
    ToolSpec,
)

log = logging.getLogger(__name__)

IDLE_SECONDS = 10.0
"""Seconds without a sign of life from the tools worker after which a call counts as lost."""

READ_TOOL, LIST_TOOL = "memory_read", "memory_list"
"""The tools through which memory is read: a block that may not use them shows nothing of it."""

ProgressReporter = Callable[[int, str], Awaitable[None]]
"""Tells of progress: which sign of life it is, and what the tool says."""


class CallRefusedError(Exception):
    """A request that was refused or failed. The text is for the other agent."""


@dataclass(frozen=True, slots=True)
class ResourceEntry:
    """A file of the block's memory."""

    path: str
    size: int


class BlockCatalogue:
    """The tools of a block, asked for again only when they have changed."""

    def __init__(self, bus: Bus, agent: str, block: str) -> None:
        self._bus = bus
        self._agent = agent
        self._block = block
        self._known: tuple[str | None, tuple[ToolSpec, ...]] = (None, ())

    async def specs(self) -> tuple[ToolSpec, ...]:
        """The tools that the block may use now. Raises CallRefusedError when nobody can tell."""
        version, specs = self._known
        try:
            request = ListTools(block=self._block, version=version)
            listing = await self._bus.call(
                DELEGATED_LIST_TOOLS, request, agent=self._agent, block=self._block
            )
        except trunkline.RemoteFault as fault:
            raise CallRefusedError(fault.message) from fault
        if listing.tools is not None:
            specs = listing.tools
        self._known = (listing.version, specs)
        return specs


class ServedBlock:
    """A block, as the agent of that name may use it."""

    def __init__(self, bus: Bus, block: str, agent: str) -> None:
        self.block = block
        self._bus = bus
        self._names: dict[str, Any] = {"agent": agent, "block": block}
        self._conversation = new_id("conv")
        self._permissions = ActorPermissions()
        self._catalogue = BlockCatalogue(bus, agent, block)

    def bounded_by(self, identity: Identity) -> "ServedBlock":
        """The block, as the agent may use it for somebody: within that identity's permissions, and in a conversation
        of that credential alone, so that stored results and tasks of another one are out of reach."""
        bounded = copy.copy(self)
        bounded._permissions = ActorPermissions(identity.permissions_in(self.block))
        bounded._conversation = key_of(self._conversation, identity.id, identity.token_id)
        return bounded

    async def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that may be used now. Raises CallRefusedError when nobody can tell."""
        specs = await self._catalogue.specs()
        return tuple(spec for spec in specs if self._permissions.allows_tool(spec.name, spec.identity))

    async def call(self, name: str, arguments: dict[str, Any], report: ProgressReporter | None = None) -> str:
        """A tool's output.

        Raises:
            CallRefusedError: it failed, was refused, or a person has to decide first.
        """
        call = new_id("call")
        outcome = await self._outcome(call, name, arguments, report)
        match outcome.status:
            case "ok":
                return outcome.output
            case "approval" if outcome.is_waiting:
                await self._stop(call, "nobody can be asked here")
                raise CallRefusedError(
                    f"{name} asks a person a question. MCP clients cannot answer it, so the running call was stopped. "
                    "The call may have had an effect; check before you call it again."
                )
            case "approval":
                raise CallRefusedError(self._approval_text(name))
            case _:
                raise CallRefusedError(outcome.output)

    async def list_files(self) -> list[ResourceEntry]:
        """The files of the block's memory."""
        found = _decode_output(await self.call(LIST_TOOL, {"recursive": True}))
        return [
            ResourceEntry(str(one["path"]), int(one.get("size", 0)))
            for one in found
            if one.get("kind") == "file"
        ]

    async def list_blocks(self) -> list[str]:
        """The names of all blocks. Raises CallRefusedError when this one may not look into memory."""
        found = _decode_output(await self.call(LIST_TOOL, {"path": "/blocks"}))
        return [
            str(one["path"]).rstrip("/").rpartition("/")[2] for one in found if one.get("kind") == "folder"
        ]

    async def read_file(self, path: str) -> str:
        """A file's text. Raises CallRefusedError, also when there is none."""
        return str(_decode_output(await self.call(READ_TOOL, {"path": path}))["content"])

    async def _outcome(
        self, call: str, name: str, arguments: dict[str, Any], report: ProgressReporter | None
    ) -> ToolOutcome:
        request = CallTool(
            call=call, name=name, arguments=arguments, block=self.block, conversation=self._conversation,
            turn=new_id("turn"), actor="", permissions=self._permissions.scopes,
        )  # fmt: skip
        try:
            return await self._wait_for_outcome(request, report)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(1.0):
                await self._stop(request.call, "the other agent cancelled it")
            raise
        except trunkline.RemoteFault as fault:
            raise CallRefusedError(fault.message) from fault

    async def _stop(self, call: str, reason: str) -> None:
        await self._bus.publish(DELEGATED_CANCEL_CALL, CancelCall(reason=reason), call=call, **self._names)

    async def _wait_for_outcome(self, request: CallTool, report: ProgressReporter | None) -> ToolOutcome:
        signs = 0
        async with self._bus.call_streaming(
            DELEGATED_CALL_TOOL, request, idle_timeout=IDLE_SECONDS, **self._names
        ) as replies:
            async for reply in replies:
                if isinstance(reply, ToolOutcome):
                    return reply
                signs += 1
                if report is not None:
                    await report(signs, reply.note)
        raise CallRefusedError(
            f"{request.name} gave no outcome. It may have had its effect; check before you call it again."
        )

    def _approval_text(self, name: str) -> str:
        return (
            f"{name} needs a person's approval, which cannot be given over MCP. Nothing was run. "
            f"The owner can permit it for agents like this one: trunkline permissions {self.block}"
        )


def _decode_output(output: str) -> Any:
    try:
        return json.loads(unwrap_tool_result(output))
    except ValueError as error:
        raise CallRefusedError("The reply of memory is not a list of files.") from error
