"""The tools at one point in time, with the guards around them. Immutable; runs no tools."""

import logging
from collections.abc import Iterable
from typing import Any

import msgspec

from trunkline._util.nlp.tool_names import suggest_tool
from trunkline.contracts.conversations.messages import RAW_ARGUMENTS
from trunkline.contracts.tools.messages import PLATFORM_SOURCE, ToolCatalogue, ToolSpec
from trunkline.contracts.tools.tool import Tool, ToolAlias
from trunkline.errors import ToolError
from trunkline.plugins import OwnedItem
from trunkline.workers.tools.arguments import prepare_arguments
from trunkline.workers.tools.block_tool_limits import BlockToolLimits
from trunkline.workers.tools.dispatch import Dispatch
from trunkline.workers.tools.spec_validation import NAME, spec_problems
from trunkline_bus import key_of

log = logging.getLogger(__name__)


PLATFORM_OWNER = "trunkline"
"""The owner of built-in tools."""


class NoSuchTool(ToolError):
    """There is no tool with this ``name``."""

    def __init__(self, name: str, resolved: str | None = None) -> None:
        self.name = name
        hint = f" Did you mean {resolved}?" if resolved else ""
        super().__init__(f"There is no tool called {name!r}.{hint} Nothing was run.", kind="not_found")


class CatalogueEntry(msgspec.Struct, frozen=True):
    """A tool of the catalogue, its definition as shown, and its owner."""

    tool: Tool
    spec: ToolSpec
    owner: str


class _Alias(msgspec.Struct):
    """An alias, its owner, and the tools that declare it."""

    alias: ToolAlias
    owner: str
    tools: list[str]


class Catalogue:
    """All tools by name. ``refused`` describes those that cannot be used, ``dispatch`` passes a call through
    the guards."""

    def __init__(self, tools: Iterable[OwnedItem[Tool]], dispatch: Dispatch) -> None:
        self.dispatch = dispatch
        self.refused: list[str] = []
        self._tools: dict[str, CatalogueEntry] = {}
        self._aliases: dict[str, _Alias] = {}
        self._block_catalogues: dict[tuple[BlockToolLimits, tuple[str, ...]], ToolCatalogue] = {}
        for owned in tools:
            self._add(owned.owner, owned.item)
        self._record_aliases()

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return all definitions by name, without the platform's own."""
        return tuple(
            self._tools[name].spec
            for name in sorted(self._tools)
            if self._tools[name].spec.source != PLATFORM_SOURCE
        )

    def find(self, name: str) -> CatalogueEntry:
        """Return the tool of that name.

        Raises:
          NoSuchTool: there is none.
        """
        found = self._tools.get(name)
        if found is None:
            raise NoSuchTool(name)
        return found

    def suggest(self, name: str, limits: BlockToolLimits) -> str | None:
        """Return the name of a similar tool that the block may use, for a name that no tool has.

        Only tools with the effect ``read`` are suggested to a model: any other might do more than the missing
        one.
        """
        usable = [one.spec for one in self._tools.values() if limits.allow(one.spec)]
        effects = {said: spec.effect for spec in usable for said in (spec.name, *spec.aliases)}
        resolved = suggest_tool(name, effects)
        return resolved if resolved is not None and effects[resolved] == "read" else None

    def resolve(self, name: str, arguments: dict[str, Any] | str) -> tuple[CatalogueEntry, dict[str, Any]]:
        """Return the tool that a call by this name means, and its arguments: those of the call, or those that an
        alias produces.

        A tool's own name has precedence over an alias of its plugin.

        Raises:
            ToolError: there is no such tool; the arguments do not fit the alias; or the alias resolves to a tool that
                does not declare it, so that policies about the alias would not have applied to that tool.
        """
        given = {RAW_ARGUMENTS: arguments} if isinstance(arguments, str) else arguments
        alias = self._aliases.get(name)
        if alias is None or name in self._tools:
            return self.find(name), given
        fitting = prepare_arguments(alias.alias.schema, given)
        try:
            resolved = alias.alias.to_canonical(fitting)
        except ToolError:
            raise
        except Exception as error:  # a failure of the alias, which is plugin code, becomes an audited refusal
            log.exception("the alias %s failed", name)
            raise ToolError(f"The alias {name} failed. Nothing was run.", kind="internal") from error
        if resolved.name not in alias.tools:
            log.error(
                "the alias %s resolves to %s, which does not declare it: add .alias to that tool",
                name,
                resolved.name,
            )
            raise ToolError(
                f"{name} is not an alias of {resolved.name}. Nothing was run.",
                kind="internal",
            )
        return self.find(resolved.name), resolved.arguments

    def for_block(
        self, limits: BlockToolLimits, version: str | None, restricted: tuple[str, ...] = ()
    ) -> ToolCatalogue:
        """Return the tools that a block with these limits has; no list when the caller already has this version."""
        whole = self._block_catalogues.get((limits, restricted))
        if whole is None:
            whole = self._block_catalogues[limits, restricted] = self._limited(limits, restricted)
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
        problem = self._refusal(owner, tool)
        if problem is None:
            self._tools[tool.spec.name] = CatalogueEntry(tool, _sourced(tool.spec, owner), owner)
            for alias in tool.aliases:
                self._add_alias(owner, tool.spec.name, alias)
        else:
            self.refused.append(f"{owner}: {problem}")
            log.warning("a tool of %s is left out: %s", owner, problem)

    def _add_alias(self, owner: str, tool: str, alias: ToolAlias) -> None:
        name = alias.schema.name
        taken = self._aliases.get(name)
        if taken is not None and taken.owner == owner and taken.alias.schema == alias.schema:
            taken.tools.append(tool)
        elif taken is not None or NAME.fullmatch(name) is None:
            self.refused.append(f"{owner}: the alias {name!r} is taken or not a valid name; rename it")
            log.warning("the alias %r of %s is taken or not a valid name, and is left out", name, owner)
        else:
            self._aliases[name] = _Alias(alias, owner, [tool])

    def _record_aliases(self) -> None:
        """Set the aliases of each tool from the registered ones. Aliases that a definition lists itself do
        not count."""
        names: dict[str, list[str]] = {}
        for name in sorted(self._aliases.keys() - self._tools.keys()):
            for tool in self._aliases[name].tools:
                names.setdefault(tool, []).append(name)
        for tool, listed in self._tools.items():
            aliases = tuple(names.get(tool, ()))
            if listed.spec.aliases != aliases:
                spec = msgspec.structs.replace(listed.spec, aliases=aliases)
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
