"""Runs the plugins' tool sources, and gives their tools distinct names.

A tool's identity is its source and its name. The short name is used while only one tool has it. Tools with the same
name are distinguished by their sources, as ``brave__search`` and ``kagi__search``.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import anyio

from trunkline.contracts.tools.tool import SourceContext, SourcedTool, Tool, ToolSource
from trunkline.plugins import OwnedItem
from trunkline.workers.tools.sandboxes import CallSandbox, ProgramBounds, SandboxSelector
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

FIRST_PAUSE, MAX_PAUSE = 1.0, 60.0
"""Seconds before a failed source is run again; the pause doubles from the shortest to the longest."""

SETTLE_SECONDS = 5.0
"""Seconds from the start for which requests for tools wait for the first tools of the sources."""

OWNER_BOUNDS = ProgramBounds(network=True, host="asked")
"""The bounds of programs that the owner's own configuration starts, such as MCP servers. The configuration
decides which of them have a network."""

SEPARATOR = "__"
MAX_TOOLS = 2000
MAX_NAME_CHARS = 64


class ToolSourceRunner:
    """The published tools of the sources. ``version`` increases with each change."""

    def __init__(self, sources: Sequence[OwnedItem[ToolSource]], sandboxes: SandboxSelector) -> None:
        self.version = 0
        self._sources = tuple(sources)
        self._sandboxes = sandboxes
        self._published: dict[str, tuple[Tool, ...]] = {}
        self._settle_until: float | None = None

    async def settle(self) -> None:
        """Wait until the sources have published their first tools, for at most SETTLE_SECONDS from their start."""
        if self._settle_until is None or anyio.current_time() >= self._settle_until:
            return
        with anyio.CancelScope(deadline=self._settle_until):
            for owned in self._sources:
                try:
                    await owned.item.settle()
                except Exception:
                    log.exception("the tool source %s of %s does not settle", owned.item.name, owned.owner)
            self._settle_until = None

    async def run(self) -> None:
        """Run every source in a separate task, until cancelled."""
        self._settle_until = anyio.current_time() + SETTLE_SECONDS
        async with anyio.create_task_group() as tasks:
            for owned in self._sources:
                tasks.start_soon(self._keep_running, owned)

    def tools(self) -> Sequence[OwnedItem[Tool]]:
        """Return the tools that are published now, by short names."""
        return [
            OwnedItem(owned.owner, tool)
            for owned in self._sources
            for tool in self._published.get(owned.item.name, ())
        ]

    async def _keep_running(self, owned: OwnedItem[ToolSource]) -> None:
        backoff = Backoff(FIRST_PAUSE, MAX_PAUSE)
        while True:
            started_at = anyio.current_time()
            try:
                await owned.item.run(self._context_of(owned))
            except Exception:
                log.exception("the tool source %s of %s failed", owned.item.name, owned.owner)
            else:
                return self._publish(owned, ())
            self._publish(owned, ())
            if anyio.current_time() - started_at > MAX_PAUSE:
                backoff.reset()
            await backoff.sleep()

    def _context_of(self, owned: OwnedItem[ToolSource]) -> SourceContext:
        def publish(tools: Sequence[Tool]) -> None:
            self._publish(owned, tools)

        return SourceContext(
            publish=publish, sandbox=CallSandbox(self._sandboxes, owned.item.name, _owner_bounds)
        )

    def _publish(self, owned: OwnedItem[ToolSource], tools: Sequence[Tool]) -> None:
        name = owned.item.name
        own = tuple(tool for tool in tools if tool.spec.source.startswith(f"{name}:"))
        if len(own) < len(tools):
            log.error("a tool source may only publish its own tools", extra={"source": name})
        if len(own) > MAX_TOOLS:
            log.error(
                "%d tools of the source %s exceed the limit; only %d are used", len(own), name, MAX_TOOLS
            )
        if own[:MAX_TOOLS] != self._published.get(name, ()):
            self._published[name] = own[:MAX_TOOLS]
            self.version += 1


async def _owner_bounds() -> ProgramBounds:
    return OWNER_BOUNDS


def with_distinct_names(
    settled: Iterable[OwnedItem[Tool]], dynamic: Sequence[OwnedItem[Tool]]
) -> Iterator[OwnedItem[Tool]]:
    """Yield the tools of sources under unique names.

    A tool keeps its short name while no other tool has it and it is no alias of a settled tool.
    """
    settled = tuple(settled)
    count = Counter(owned.item.spec.name for owned in (*dynamic, *settled))
    count.update(alias_names(settled))
    for owned in dynamic:
        yield (
            owned if count[owned.item.spec.name] == 1 else _with_qualified_name(owned, owned.item.spec.source)
        )


def without_alias_clashes(
    settled: Iterable[OwnedItem[Tool]], isolated: Iterable[OwnedItem[Tool]]
) -> Iterator[OwnedItem[Tool]]:
    """Yield the tools of isolated plugins. A tool whose name is an alias of a settled tool is renamed."""
    taken = alias_names(settled)
    for owned in isolated:
        yield _with_qualified_name(owned, f"native:{owned.owner}") if owned.item.spec.name in taken else owned


def alias_names(tools: Iterable[OwnedItem[Tool]]) -> set[str]:
    """Return the aliases of these tools."""
    return {alias.schema.name for owned in tools for alias in owned.item.aliases}


def _with_qualified_name(owned: OwnedItem[Tool], source: str) -> OwnedItem[Tool]:
    return OwnedItem(owned.owner, SourcedTool(owned.item, name=qualified_name(source, owned.item.spec.name)))


def qualified_name(source: str, name: str) -> str:
    """Return the name that includes the source: ``brave__search`` for ``search`` of ``mcp:brave``."""
    origin = re.sub(r"[^A-Za-z0-9_-]", "-", source.partition(":")[2])
    return f"{origin}{SEPARATOR}{name}"[:MAX_NAME_CHARS]
