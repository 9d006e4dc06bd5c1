"""Tools that come and go: runs the plugins' tool sources, and says by which names their tools are called.

A tool's identity is its source and its name. Its short name alone is shown while no other tool has it; tools that share
one are told apart by their sources, as ``brave__search`` and ``kagi__search``.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import anyio

from trunkline.contracts.tools.tool import SourceContext, SourcedTool, Tool, ToolSource
from trunkline.plugins import Owned
from trunkline.workers.tools.sandboxes import CallSandbox, ProgramBounds, SandboxSelector

log = logging.getLogger(__name__)

SHORTEST, LONGEST = 1.0, 60.0
"""Seconds before a source that raised is run again; the pause doubles from the shortest to the longest."""

OWNER_BOUNDS = ProgramBounds(network=True, host="asked")
"""Of programs that the owner's own configuration begins, such as MCP servers: it says which of them have a network."""

SEPARATOR = "__"
MOST_TOOLS = 2000
LONGEST_NAME = 64


class ToolSourceRunner:
    """What the sources publish. ``version`` changes whenever that does."""

    def __init__(self, sources: Sequence[Owned[ToolSource]], sandboxes: SandboxSelector) -> None:
        self.version = 0
        self._sources = tuple(sources)
        self._sandboxes = sandboxes
        self._published: dict[str, tuple[Tool, ...]] = {}

    async def run(self) -> None:
        """Run every source, each by itself, until cancelled."""
        async with anyio.create_task_group() as tasks:
            for owned in self._sources:
                tasks.start_soon(self._keep_running, owned)

    def tools(self) -> Sequence[Owned[Tool]]:
        """What is published now, by short names."""
        return [
            Owned(owned.owner, tool)
            for owned in self._sources
            for tool in self._published.get(owned.item.name, ())
        ]

    async def _keep_running(self, owned: Owned[ToolSource]) -> None:
        pause = SHORTEST
        while True:
            began = anyio.current_time()
            try:
                await owned.item.run(self._context_of(owned))
            except Exception:
                log.exception("the tool source %s of %s failed", owned.item.name, owned.owner)
            else:
                return self._publish(owned, ())
            self._publish(owned, ())
            pause = SHORTEST if anyio.current_time() - began > LONGEST else min(2 * pause, LONGEST)
            await anyio.sleep(pause)

    def _context_of(self, owned: Owned[ToolSource]) -> SourceContext:
        def publish(tools: Sequence[Tool]) -> None:
            self._publish(owned, tools)

        return SourceContext(
            publish=publish, sandbox=CallSandbox(self._sandboxes, owned.item.name, _owner_bounds)
        )

    def _publish(self, owned: Owned[ToolSource], tools: Sequence[Tool]) -> None:
        name = owned.item.name
        theirs = tuple(tool for tool in tools if tool.spec.source.startswith(f"{name}:"))
        if len(theirs) < len(tools):
            log.error("a tool source may only publish tools of its own", extra={"source": name})
        if len(theirs) > MOST_TOOLS:
            log.error("of %d tools of the source %s only %d are used", len(theirs), name, MOST_TOOLS)
        if theirs[:MOST_TOOLS] != self._published.get(name, ()):
            self._published[name] = theirs[:MOST_TOOLS]
            self.version += 1


async def _owner_bounds() -> ProgramBounds:
    return OWNER_BOUNDS


def with_distinct_names(
    settled: Iterable[Owned[Tool]], coming: Sequence[Owned[Tool]]
) -> Iterator[Owned[Tool]]:
    """The tools that come and go, by names that no other has: short as long as that is the only one of its kind, and
    none that models call a settled tool by."""
    settled = tuple(settled)
    count = Counter(owned.item.spec.name for owned in (*coming, *settled))
    count.update(alias_names(settled))
    for owned in coming:
        yield (
            owned if count[owned.item.spec.name] == 1 else _with_qualified_name(owned, owned.item.spec.source)
        )


def without_alias_clashes(
    settled: Iterable[Owned[Tool]], apart: Iterable[Owned[Tool]]
) -> Iterator[Owned[Tool]]:
    """The tools of plugins apart, of which none takes the calls that models mean for a settled one."""
    taken = alias_names(settled)
    for owned in apart:
        yield _with_qualified_name(owned, f"native:{owned.owner}") if owned.item.spec.name in taken else owned


def alias_names(tools: Iterable[Owned[Tool]]) -> set[str]:
    """The further names by which models call these tools."""
    return {alias.schema.name for owned in tools for alias in owned.item.aliases}


def _with_qualified_name(owned: Owned[Tool], source: str) -> Owned[Tool]:
    return Owned(owned.owner, SourcedTool(owned.item, name=qualified_name(source, owned.item.spec.name)))


def qualified_name(source: str, name: str) -> str:
    """The name that tells whose the tool is: ``brave__search`` for ``search`` of ``mcp:brave``."""
    whose = re.sub(r"[^A-Za-z0-9_-]", "-", source.partition(":")[2])
    return f"{whose}{SEPARATOR}{name}"[:LONGEST_NAME]
