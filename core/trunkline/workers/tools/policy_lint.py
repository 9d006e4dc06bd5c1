"""What a rule names that nobody knows now: something to come, or a slip. Refuses nothing and prints nothing."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

import msgspec

from trunkline.config.problems import closest_matches
from trunkline.contracts.policies.messages import Policy
from trunkline.contracts.tools.messages import (
    DISCOVER_TOOLS,
    LOAD_TOOLS,
    PLATFORM_SOURCE,
    READ_RESULT,
    ListTools,
    ToolSpec,
)
from trunkline.contracts.tools.subjects import LIST_TOOLS
from trunkline.plugins import Plugins
from trunkline.policy.policy_match import matches_action, matches_resource
from trunkline.workers.tools.authorization import actions_of, resource_names
from trunkline_bus import Bus, BusError, RemoteFault

MOST_NEAR = 3
SECONDS = 10.0
ABSENT = 0.3
"""Seconds that a tools worker is waited for: where none is after that, none runs."""

TOOL = "tool:"

PLATFORM_TOOLS = tuple(
    ToolSpec(name=name, description="", parameters={}, effect="read", source=PLATFORM_SOURCE)
    for name in (DISCOVER_TOOLS, LOAD_TOOLS, READ_RESULT)
)
"""The platform's own tools, which no plugin brings."""


class UnknownName(msgspec.Struct, frozen=True, kw_only=True):
    """A word of a rule that nothing answers to now: ``what`` is wrong with it, as a sentence, and words ``near`` it."""

    word: str
    what: str
    near: tuple[str, ...]

    @property
    def message(self) -> str:
        """How a person reads it."""
        return f"{self.what} Did you mean {' or '.join(self.near)}?" if self.near else self.what


async def known_tools(bus: Bus | None, blocks: Sequence[str], plugins: Plugins) -> tuple[ToolSpec, ...]:
    """The tools that are known now. Of those that come and go only a tools worker knows."""
    specs = {spec.identity: spec for spec in (*PLATFORM_TOOLS, *_installed(plugins))}
    if bus is not None:
        specs |= {spec.identity: spec async for spec in _listed(bus, blocks)}
    return tuple(specs.values())


def find_unknown_names(
    policy: Policy, blocks: Sequence[str], specs: Sequence[ToolSpec]
) -> tuple[UnknownName, ...]:
    """The words of a rule that nothing answers to among these, which are all that is known now."""
    tools = _unknown_tools(policy, specs) if policy.resource.startswith(TOOL) else ()
    return (*_unknown_subjects(policy.subject, blocks), *tools)


def _unknown_subjects(subject: str, blocks: Sequence[str]) -> Iterator[UnknownName]:
    kind, mark, name = subject.partition(":")
    if subject in ("*", "type:agent") or (kind == "block" and name in blocks):
        return
    if subject in blocks:
        what = f"{subject} stands for a person of that id, and binds the agents that work for them."
        yield UnknownName(word=subject, what=what, near=(f"block:{subject}",))
    elif kind == "block" and mark:
        meant = tuple(f"block:{one}" for one in closest_matches(name, blocks, MOST_NEAR))
        yield UnknownName(word=subject, what=f"There is no block {name} now.", near=meant)
    elif meant := tuple(closest_matches(subject, ("type:agent", *(f"block:{one}" for one in blocks)))):
        yield UnknownName(word=subject, what=f"{subject} stands for a person of that id.", near=meant)


def _unknown_tools(policy: Policy, specs: Sequence[ToolSpec]) -> Iterator[UnknownName]:
    meant = [spec for spec in specs if matches_resource(policy, *resource_names(spec))]
    actions = sorted({action.partition(":")[0] for spec in meant for action in _actions_of(spec)})
    if not meant:
        yield UnknownName(
            word=policy.resource,
            what=f"No tool is called {policy.resource.removeprefix(TOOL)} now. Tools of MCP servers and of other hosts "
            "are known only while the platform runs.",
            near=_tools_near(policy.resource, specs),
        )
    elif not any(matches_action(policy.action, action) for spec in meant for action in _actions_of(spec)):
        yield UnknownName(
            word=policy.action,
            what=f"No call of {policy.resource} is a {policy.action}, only: {', '.join(actions)}.",
            near=(),
        )


def _tools_near(resource: str, specs: Iterable[ToolSpec]) -> tuple[str, ...]:
    """By short names and by names with a source, whichever was said."""
    said = resource.removeprefix(TOOL)
    known = {spec.name for spec in specs}
    if ":" in said:
        known = {name for spec in specs for name in (spec.identity, f"{spec.source}:*")}
    return tuple(f"{TOOL}{name}" for name in closest_matches(said, known, MOST_NEAR))


def _actions_of(spec: ToolSpec) -> tuple[str, ...]:
    return (*actions_of(spec), "network") if spec.network else actions_of(spec)


def _installed(plugins: Plugins) -> Iterator[ToolSpec]:
    for owned in plugins.tools():
        spec = owned.item.spec
        sourced = spec.source != "native:unknown"
        yield spec if sourced else msgspec.structs.replace(spec, source=f"native:{owned.owner}")


async def _listed(bus: Bus, blocks: Iterable[str]) -> AsyncIterator[ToolSpec]:
    """The tools that a tools worker has for any block; none when no worker answers."""
    version = None
    for block in blocks:
        try:
            said = await bus.call(
                LIST_TOOLS, ListTools(block=block, version=version), timeout=SECONDS, absent=ABSENT
            )
        except RemoteFault:
            continue  # that block's own settings are broken
        except BusError:
            return
        version = said.version
        for spec in (*(said.tools or ()), *said.own):
            yield spec
