"""The tools of a block: those that it may use, and how to permit the others. Runs no tools and changes nothing."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio.to_thread

from trunkline.contracts.policies.messages import Policy
from trunkline.contracts.tools.messages import ToolSpec
from trunkline.contracts.tools.tool import ToolContext
from trunkline.errors import ToolError
from trunkline.policy import Decision
from trunkline.workers.tools.authorization import OWNER_ACTOR, CallAuthorizer
from trunkline.workers.tools.block_tool_limits import BlockToolLimits
from trunkline.workers.tools.catalogue import Catalogue, NoSuchTool
from trunkline.workers.tools.sandboxes import SandboxSelector
from trunkline.workers.tools.search_index import ToolSearchIndex
from trunkline.workers.tools.tool_manifest import CLI_SOURCE

KEPT_FOR = 5.0
"""Seconds for which the restricted names are cached while nothing changes."""


@dataclass(frozen=True, slots=True)
class ToolAvailability:
    """A tool and the block's access to it. ``asks``: each call needs a person's approval. ``restricted``: the reason
    why the block may not use the tool and the way to permit it, as a sentence.
    """

    spec: ToolSpec
    asks: bool = False
    restricted: str = ""


@dataclass(frozen=True, slots=True)
class _CachedRestrictions:
    """The restricted names, and the objects that they were computed from."""

    catalogue: Catalogue
    limits: BlockToolLimits
    policies: list[Policy]
    until: float
    names: tuple[str, ...]

    def is_valid(self, catalogue: Catalogue, limits: BlockToolLimits, policies: list[Policy]) -> bool:
        """Report whether the cached names are still valid."""
        same = self.catalogue is catalogue and self.limits == limits and self.policies == policies
        return same and anyio.current_time() < self.until


class ToolDiscovery:
    """Looks tools up. Methods raise ToolError when the block's permissions cannot be determined."""

    def __init__(
        self,
        catalogue: Callable[[], Awaitable[Catalogue]],
        limits_of: Callable[[str], Awaitable[BlockToolLimits]],
        permissions: CallAuthorizer,
        sandboxes: SandboxSelector,
    ) -> None:
        self._catalogue = catalogue
        self._limits_of = limits_of
        self._permissions = permissions
        self._sandboxes = sandboxes
        self._ranked: tuple[Catalogue, ToolSearchIndex] | None = None
        self._restrictions: dict[str, _CachedRestrictions] = {}

    async def search(self, context: ToolContext, question: str) -> list[ToolSpec]:
        """Return the tools that match a question, the best match first; without a question all tools, by name."""
        catalogue = await self._catalogue()
        specs = catalogue.specs()
        if question.strip():
            ranking = await self._ranking(catalogue)
            specs = tuple(await anyio.to_thread.run_sync(ranking.search, question))
        return [spec for spec in specs if not spec.blocks or context.block in spec.blocks]

    async def find(self, context: ToolContext, name: str) -> ToolSpec:
        """Return the tool of that name. Raises ToolError with a suggestion when the block has none."""
        catalogue = await self._catalogue()
        try:
            spec = catalogue.find(name).spec
        except NoSuchTool:
            spec = None
        if spec is None or (spec.blocks and context.block not in spec.blocks):
            raise NoSuchTool(name, catalogue.suggest(name, await self._limits_of(context.block)))
        return spec

    async def availability(self, context: ToolContext, specs: Sequence[ToolSpec]) -> list[ToolAvailability]:
        """Return the block's access to these tools."""
        limits = await self._limits_of(context.block)
        decisions = await self._permissions.decide_tools(
            specs, context.block, context.actor, context.conversation
        )
        no_sandbox = await self._no_sandbox()
        return [
            ToolAvailability(
                spec, decision.asks, _restriction(spec, decision, limits, context.block, no_sandbox)
            )
            for spec, decision in zip(specs, decisions, strict=True)
        ]

    async def restricted(self, block: str) -> tuple[str, ...]:
        """Return the names of the tools that the block's agent may not use; all names when its permissions cannot be
        determined.

        Each turn reads these names, so they are cached while catalogue, limits and policies stay the same, and for at
        most KEPT_FOR seconds: a policy may expire, and a sandbox may be installed.
        """
        catalogue = await self._catalogue()
        try:
            limits, policies = await self._limits_of(block), await self._permissions.policies(block)
            cached = self._restrictions.get(block)
            if cached is None or not cached.is_valid(catalogue, limits, policies):
                names = await self._refused(block, catalogue, limits)
                until = anyio.current_time() + KEPT_FOR
                cached = self._restrictions[block] = _CachedRestrictions(
                    catalogue, limits, policies, until, names
                )
        except ToolError:
            return tuple(spec.name for spec in catalogue.specs())
        return cached.names

    async def _refused(self, block: str, catalogue: Catalogue, limits: BlockToolLimits) -> tuple[str, ...]:
        specs = catalogue.specs()
        decisions = await self._permissions.decide_tools(specs, block, OWNER_ACTOR)
        both = list(zip(specs, decisions, strict=True))
        runs = any(decision.allowed and _needs_sandbox(spec) for spec, decision in both)
        no_sandbox = (
            await self._no_sandbox() if runs else ""
        )  # the probe starts a program, so it runs only if the block may run programs
        return tuple(spec.name for spec, one in both if _restriction(spec, one, limits, block, no_sandbox))

    async def permissions_summary(self, context: ToolContext) -> str:
        """Return the general permissions of the block's agent in one line."""
        return ", ".join(f"{what}: {answer}" for what, answer in await self._permissions.summary(context))

    async def _ranking(self, catalogue: Catalogue) -> ToolSearchIndex:
        index = self._ranked
        if index is None or index[0] is not catalogue:
            built = await anyio.to_thread.run_sync(ToolSearchIndex, catalogue.specs())
            index = self._ranked = (catalogue, built)
        return index[1]

    async def _no_sandbox(self) -> str:
        """Return why no program can run here; empty when programs can run."""
        try:
            await self._sandboxes.select()
        except ToolError as error:
            return str(error)
        return ""


def _restriction(
    spec: ToolSpec, decision: Decision, limits: BlockToolLimits, block: str, no_sandbox: str
) -> str:
    if spec.is_remote and not limits.allow(spec):
        return f"it is on another host. A person can add {block} to that host's file in the home's remotes folder."
    if not limits.allow(spec):
        return f"{block} is limited to some tools. A person can add it to tools in the block's block.toml."
    if not decision.allowed:
        return f"{decision.why} {decision.hint}".strip().removesuffix(".") + "."
    return no_sandbox if no_sandbox and _needs_sandbox(spec) else ""


def _needs_sandbox(spec: ToolSpec) -> bool:
    return not spec.is_remote and (spec.effect == "exec" or spec.source.startswith(CLI_SOURCE))
