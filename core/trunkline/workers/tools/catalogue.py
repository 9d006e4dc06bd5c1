"""The tools there are at one time, and the guards that stand around them. Does not change; runs none of them."""

import logging
from collections.abc import Iterable
from typing import Any

import msgspec

from trunkline._util.nlp.tool_names import suggest_tool
from trunkline.contracts.conversations.messages import RAW_ARGUMENTS
from trunkline.contracts.tools.messages import PLATFORM_SOURCE, ToolCatalogue, ToolSpec
from trunkline.contracts.tools.tool import Tool, ToolAlias
from trunkline.errors import ToolError
from trunkline.plugins import Owned
from trunkline.workers.tools.arguments import prepare_arguments
from trunkline.workers.tools.block_tool_limits import BlockToolLimits
from trunkline.workers.tools.dispatch import Dispatch
from trunkline.workers.tools.spec_validation import NAME, spec_problems
from trunkline_bus import key_of

log = logging.getLogger(__name__)


PLATFORM_OWNER = "trunkline"
"""The owner of what is built in."""


class NoSuchTool(ToolError):
    """No tool has this ``name``."""

    def __init__(self, name: str, meant: str | None = None) -> None:
        self.name = name
        hint = f" Did you mean {meant}?" if meant else ""
        super().__init__(f"There is no tool called {name!r}.{hint} Nothing was run.", kind="not_found")


class CatalogueEntry(msgspec.Struct, frozen=True):
    """A tool of the catalogue, its definition as it is shown, and who brought it."""

    tool: Tool
    spec: ToolSpec
    owner: str


class _Alias(msgspec.Struct):
    """Another name, who brought it, and the tools that say it is one of theirs."""

    means: ToolAlias
    owner: str
    tools: list[str]


class Catalogue:
    """All tools by name. ``refused`` tells of those that cannot be used, ``dispatch`` brings a call past the guards."""

    def __init__(self, tools: Iterable[Owned[Tool]], dispatch: Dispatch) -> None:
        self.dispatch = dispatch
        self.refused: list[str] = []
        self._tools: dict[str, CatalogueEntry] = {}
        self._aliases: dict[str, _Alias] = {}
        self._shown: dict[tuple[BlockToolLimits, tuple[str, ...]], ToolCatalogue] = {}
        for owned in tools:
            self._add(owned.owner, owned.item)
        self._record_aliases()

    def specs(self) -> tuple[ToolSpec, ...]:
        """All of them by name, without the platform's own."""
        return tuple(
            self._tools[name].spec
            for name in sorted(self._tools)
            if self._tools[name].spec.source != PLATFORM_SOURCE
        )

    def find(self, name: str) -> CatalogueEntry:
        """The tool of that name.

        Raises:
            NoSuchTool: there is none.
        """
        found = self._tools.get(name)
        if found is None:
            raise NoSuchTool(name)
        return found

    def suggest(self, name: str, limits: BlockToolLimits) -> str | None:
        """The name of a tool that the block may use which a model is told of in place of one that no tool has. Only of
        one that reads: nobody knows what the missing one would have done, so every other might do more."""
        usable = [one.spec for one in self._tools.values() if limits.allow(one.spec)]
        effects = {said: spec.effect for spec in usable for said in (spec.name, *spec.aliases)}
        meant = suggest_tool(name, effects)
        return meant if meant is not None and effects[meant] == "read" else None

    def resolve(self, name: str, arguments: dict[str, Any] | str) -> tuple[CatalogueEntry, dict[str, Any]]:
        """The tool that a call by this name means, and the arguments for it: its own, or what an alias makes of them.
        A tool's own name goes before an alias of its plugin.

        Raises:
            ToolError: there is no such tool, the arguments are not as the alias wants them, or it means a tool at
                which it does not stand: a rule about the name would not have reached that.
        """
        given = {RAW_ARGUMENTS: arguments} if isinstance(arguments, str) else arguments
        alias = self._aliases.get(name)
        if alias is None or name in self._tools:
            return self.find(name), given
        fitting = prepare_arguments(alias.means.schema, given)
        try:
            meant = alias.means.means(fitting)
        except ToolError:
            raise
        except Exception as error:  # a plugin's own code, before any guard: it refuses, and is audited
            log.exception("the alias %s failed", name)
            raise ToolError(
                f"What is meant by {name} cannot be told. Nothing was run.", kind="internal"
            ) from error
        if meant.name not in alias.tools:
            log.error(
                "the alias %s means %s, which does not have it: add .alias to that tool", name, meant.name
            )
            raise ToolError(
                f"{name} is no other name of {meant.name}, so it cannot mean it. Nothing was run.",
                kind="internal",
            )
        return self.find(meant.name), meant.arguments

    def for_block(
        self, limits: BlockToolLimits, version: str | None, restricted: tuple[str, ...] = ()
    ) -> ToolCatalogue:
        """The tools of a block with these limits; without them when the asker has this version."""
        whole = self._shown.get((limits, restricted))
        if whole is None:
            whole = self._shown[limits, restricted] = self._limited(limits, restricted)
        return ToolCatalogue(version=whole.version) if whole.version == version else whole

    def _limited(self, limits: BlockToolLimits, restricted: tuple[str, ...]) -> ToolCatalogue:
        specs = (self._tools[name].spec for name in sorted(self._tools))
        allowed = tuple(spec for spec in specs if limits.allow(spec))
        barred = tuple(spec.name for spec in allowed if spec.name in restricted)
        return ToolCatalogue(
            version=key_of("tools", msgspec.json.encode((allowed, barred)).decode()),
            tools=tuple(spec for spec in allowed if spec.source != PLATFORM_SOURCE),
            own=tuple(spec for spec in allowed if spec.source == PLATFORM_SOURCE),
            restricted=barred,
        )

    def _add(self, owner: str, tool: Tool) -> None:
        wrong = self._refusal(owner, tool)
        if wrong is None:
            self._tools[tool.spec.name] = CatalogueEntry(tool, _sourced(tool.spec, owner), owner)
            for alias in tool.aliases:
                self._add_alias(owner, tool.spec.name, alias)
        else:
            self.refused.append(f"{owner}: {wrong}")
            log.warning("a tool of %s is left out: %s", owner, wrong)

    def _add_alias(self, owner: str, tool: str, alias: ToolAlias) -> None:
        name = alias.schema.name
        taken = self._aliases.get(name)
        if taken is not None and taken.owner == owner and taken.means.schema == alias.schema:
            taken.tools.append(tool)
        elif taken is not None or NAME.fullmatch(name) is None:
            self.refused.append(f"{owner}: the alias {name!r} is taken, or no name; rename it")
            log.warning("the alias %r of %s is taken, or no name, and is left out", name, owner)
        else:
            self._aliases[name] = _Alias(alias, owner, [tool])

    def _record_aliases(self) -> None:
        """Have each tool say by which other names it goes; what anybody wrote there himself does not count."""
        names: dict[str, list[str]] = {}
        for name in sorted(self._aliases.keys() - self._tools.keys()):
            for tool in self._aliases[name].tools:
                names.setdefault(tool, []).append(name)
        for tool, listed in self._tools.items():
            also = tuple(names.get(tool, ()))
            if listed.spec.aliases != also:
                spec = msgspec.structs.replace(listed.spec, aliases=also)
                self._tools[tool] = msgspec.structs.replace(listed, spec=spec)

    def _refusal(self, owner: str, tool: Tool) -> str | None:
        found = spec_problems(tool.spec)
        if found:
            return f"{tool.spec.name}: {'; '.join(found)}"
        if tool.spec.is_remote and tool.spec.source != owner:
            return f"{tool.spec.name}: only a remote's tools may have the source {tool.spec.source!r}"
        if tool.spec.source == PLATFORM_SOURCE and owner != PLATFORM_OWNER:
            return f"{tool.spec.name}: only the platform's own tools may have the source {PLATFORM_SOURCE!r}"
        other = self._tools.get(tool.spec.name)
        if other is not None:
            return f"the tool name {tool.spec.name!r} is taken by {other.owner}; rename one of them"
        return None


def _sourced(spec: ToolSpec, owner: str) -> ToolSpec:
    if spec.source != "native:unknown":
        return spec
    return msgspec.structs.replace(spec, source=f"native:{owner}")
