"""The tools of remote hosts: the index of each remote's tools, and the tool that sends its calls to the remote.

A remote keeps its own effect ledger under the same call keys. So the hub repeats a request until it receives the
outcome, and the call still runs only once. The last known tools of each remote are stored in the cache folder. They
stay in the catalogue while the remote is unreachable, and a call then fails with that reason.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec

from trunkline._util.private_folders import make_private
from trunkline.contracts.tools.messages import (
    BUSY,
    REMOTE_SOURCE,
    CallTool,
    ListTools,
    ToolCatalogue,
    ToolOutcome,
    ToolSpec,
)
from trunkline.contracts.tools.subjects import REMOTE_CALL_TOOL, REMOTE_LIST_TOOLS
from trunkline.contracts.tools.tool import Tool, ToolContext
from trunkline.errors import ConfigError, OutcomeUnknown, ToolError, error_kind_for_code
from trunkline.plugins import OwnedItem
from trunkline.runtime.remotes.registry import SEPARATOR, Remote, RemoteRegistry
from trunkline.runtime.worker import WorkerContext
from trunkline_bus import Bus, BusError, RemoteFault, Scope

log = logging.getLogger(__name__)

ASK_SECONDS = 2.0
"""Seconds between two readings of the remotes' tools, and to wait for an answer."""

IDLE_TIMEOUT = 5.0
"""Seconds without a heartbeat after which a call is sent again. A heartbeat arrives every second."""

PAUSE = 0.5
WEEK = 7 * 86_400.0
"""Seconds. The remote enforces its tools' time limits; the limit on the hub only has to be longer."""

LARGEST_ARGUMENTS = 100_000
"""Largest number of bytes of a call's arguments. Larger messages need an object bucket, which remotes cannot read."""


class RemoteToolIndex:
    """The tools of all enrolled remotes. ``version`` increases with each change."""

    def __init__(self, context: WorkerContext) -> None:
        self.version = 0
        self._bus = context.bus
        self._registry = RemoteRegistry(context.home.remotes)
        self._cache = context.home.cache / "remotes"
        self._unreachable_timeout = context.config.settings.remotes.unreachable_timeout
        self._offers: dict[str, ToolCatalogue] = {}
        self._mark = self._registry.stamp()
        for remote in self._enrolled():
            self._load_cached(remote.name)

    async def poll(self) -> None:
        """Read the tools of every remote repeatedly, until cancelled."""
        while True:
            async with anyio.create_task_group() as tasks:
                for remote in self._enrolled():
                    tasks.start_soon(self._poll_remote, remote.name)
            if self._registry.stamp() != self._mark:
                self._mark = self._registry.stamp()
                self.version += 1
            await anyio.sleep(ASK_SECONDS)

    def allowed_for(self, block: str) -> frozenset[str]:
        """Return the remotes whose tools the block may use."""
        return frozenset(remote.name for remote in self._enrolled() if block in remote.blocks)

    def tools(self) -> Sequence[OwnedItem[Tool]]:
        """Return a ``RemoteTool`` for each known tool."""
        return [
            OwnedItem(
                f"{REMOTE_SOURCE}{remote.name}",
                RemoteTool(self._bus, remote.name, spec, self._unreachable_timeout),
            )
            for remote in self._enrolled()
            for spec in self._offers.get(remote.name, _NOTHING).tools or ()
        ]

    def _enrolled(self) -> tuple[Remote, ...]:
        try:
            return self._registry.all()
        except ConfigError as error:
            log.error("no remote's tools may be used: %s", error)
            return ()

    async def _poll_remote(self, name: str) -> None:
        known = self._offers.get(name, _NOTHING).version
        try:
            request = ListTools(block="", version=known)
            offer = await self._bus.call(REMOTE_LIST_TOOLS, request, timeout=ASK_SECONDS, remote=name)
        except BusError as error:
            return log.debug("remote %s does not say what it offers: %s", name, error)
        if offer.tools is not None and offer.version != known:
            self._offers[name] = offer
            self.version += 1
            await anyio.to_thread.run_sync(self._store_cached, name, offer)

    def _load_cached(self, name: str) -> None:
        try:
            self._offers[name] = msgspec.json.decode(self._file(name).read_bytes(), type=ToolCatalogue)
        except (OSError, msgspec.MsgspecError) as error:
            log.debug("nothing is known of remote %s yet: %s", name, error)

    def _store_cached(self, name: str, offer: ToolCatalogue) -> None:
        file = self._file(name)
        try:
            make_private(file.parent)
            draft = file.with_suffix(".draft")
            draft.write_bytes(msgspec.json.encode(offer))
            draft.replace(file)
        except OSError as error:
            log.warning("the tools of remote %s cannot be kept for later: %s", name, error)

    def _file(self, name: str) -> Path:
        return self._cache / f"{name}.json"


class RemoteTool(Tool):
    """Runs calls of one tool on its host, and waits for the outcome across interruptions of the connection."""

    def __init__(self, bus: Bus, remote: str, spec: ToolSpec, timeout: float) -> None:
        self.spec = msgspec.structs.replace(
            spec,
            name=f"{remote}{SEPARATOR}{spec.name}",
            description=f"[On the host {remote}] {spec.description}",
            source=f"{REMOTE_SOURCE}{remote}",
            paths=(),  # the paths are on that host, which checks them
            memory_paths=(),
            memory_trees=(),
            idempotent=True,  # the remote's ledger recognizes a repeated call
            timeout=WEEK,
            untrusted_output=True,  # an attacker who controls the host controls the output
            derived=False,  # the mark refers to that host's memory and not to the hub's
        )
        self._bus, self._remote, self._name, self._timeout = (
            bus,
            remote,
            spec.name,
            timeout,
        )

    async def __call__(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """Run the call on its host and return the result.

        Raises:
            ToolError: the host was unreachable before the call was sent to it, or its tool refused or failed.
            OutcomeUnknown: the host received the call and was then unreachable for longer than ``timeout`` seconds.
        """
        if len(msgspec.json.encode(arguments)) > LARGEST_ARGUMENTS:
            raise ToolError(
                f"The arguments are too large to send to {self._remote}. Nothing was run.", kind="too_large"
            )
        if not context.resumed:
            await self._check_reachable()
        outcome = await self._run_remotely(context, arguments)
        if not isinstance(outcome.loads, msgspec.UnsetType):
            context.load([f"{self._remote}{SEPARATOR}{name}" for name in outcome.loads])
        return _text_of(outcome, self._remote)

    async def _check_reachable(self) -> None:
        """Raise ToolError when the host is unreachable. The call was not sent then, so it certainly did not run."""
        try:
            await self._bus.call(
                REMOTE_LIST_TOOLS, ListTools(block="", version=None), timeout=ASK_SECONDS, remote=self._remote
            )
        except BusError as error:
            raise ToolError(
                f"The host {self._remote} is unreachable, so {self._name} was not run there. "
                f"Try again when {self._remote} is connected.",
                kind="unavailable",
            ) from error

    async def _run_remotely(self, context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
        request = CallTool(
            call=context.call, name=self._name, arguments=arguments, block=context.block,
            conversation=context.conversation, turn=context.turn, actor=context.actor, again=context.resumed,
        )  # fmt: skip
        heard = anyio.current_time()
        while anyio.current_time() - heard < self._timeout:
            try:
                async with self._bus.call_streaming(
                    REMOTE_CALL_TOOL,
                    request,
                    idle_timeout=IDLE_TIMEOUT,
                    scope=_scope(context),
                    remote=self._remote,
                ) as replies:
                    async for reply in replies:
                        if isinstance(reply, ToolOutcome):
                            return reply
                        heard = anyio.current_time()
                        context.report(reply.note)
            except RemoteFault as fault:
                if fault.code != BUSY:
                    raise ToolError(
                        f"{self._remote}: {fault.message}", kind=error_kind_for_code(fault.code)
                    ) from fault
                heard = anyio.current_time()
            except BusError as error:
                log.info("call %s waits for remote %s: %s", context.call, self._remote, error)
            request = msgspec.structs.replace(request, again=True)
            context.report(f"{self._remote} is unreachable; waiting for its result")
            await anyio.sleep(PAUSE)
        raise OutcomeUnknown(
            f"The host {self._remote} has been unreachable for {self._timeout:g} seconds since it received the call of "
            f"{self._name}. The tool may have run. Check that before you call it again."
        )


_NOTHING = ToolCatalogue(version="")


def _text_of(outcome: ToolOutcome, remote: str) -> str:
    match outcome.status:
        case "ok":
            return outcome.output
        case "unknown":
            raise OutcomeUnknown(outcome.output)
        case "approval" | "agent":
            raise ToolError(
                f"{remote} requires a person's approval, which this home cannot give. Nothing was run.",
                kind="permission_denied",
            )
        case "error":
            raise ToolError(outcome.output, kind=outcome.kind)


def _scope(context: ToolContext) -> Scope:
    return Scope(block=context.block, conversation=context.conversation, turn=context.turn)
