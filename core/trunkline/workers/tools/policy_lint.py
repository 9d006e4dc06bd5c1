"""Finds unknown names in a policy: a typing error, or a tool that does not exist yet. Refuses nothing."""

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
from trunkline.policy.block_access import BLOCK_RESOURCE
from trunkline.policy.policy_match import matches_action, matches_resource
from trunkline.policy.validation import IDENTITY_GROUPS
from trunkline.workers.tools.authorization import actions_of, resource_names
from trunkline_bus import Bus, BusError, RemoteFault

MOST_NEAR = 3
LIST_TIMEOUT = 10.0
"""Seconds to wait for the list of tools."""
ABSENT = 0.3
"""Seconds to wait for a tools worker; without an answer by then none is running."""

TOOL = "tool:"

PLATFORM_TOOLS = tuple(
    ToolSpec(name=name, description="", parameters={}, effect="read", source=PLATFORM_SOURCE)
    for name in (DISCOVER_TOOLS, LOAD_TOOLS, READ_RESULT)
)
"""The platform's own tools, which no plugin provides."""


class UnknownName(msgspec.Struct, frozen=True, kw_only=True):
    """An unknown word of a policy: the problem as a sentence, and similar known words."""

    word: str
    problem: str
    similar: tuple[str, ...]

    @property
    def message(self) -> str:
        """The problem with a suggestion, as a text for a person."""
        return f"{self.problem} Did you mean {' or '.join(self.similar)}?" if self.similar else self.problem


async def known_tools(bus: Bus | None, blocks: Sequence[str], plugins: Plugins) -> tuple[ToolSpec, ...]:
    """Return the tools that are known now. Only a running tools worker knows the tools of tool sources."""
    specs = {spec.identity: spec for spec in (*PLATFORM_TOOLS, *_installed(plugins))}
    if bus is not None:
        specs |= {spec.identity: spec async for spec in _listed(bus, blocks)}
    return tuple(specs.values())


def find_unknown_names(
    policy: Policy, blocks: Sequence[str], specs: Sequence[ToolSpec]
) -> tuple[UnknownName, ...]:
    """Return the unknown words of a policy, given the known blocks and tools."""
    tools = _unknown_tools(policy, specs) if policy.resource.startswith(TOOL) else ()
    shared = _unknown_block(policy.resource, blocks)
    return (*_unknown_subjects(policy.subject, blocks), *tools, *shared)


def _unknown_block(resource: str, blocks: Sequence[str]) -> Iterator[UnknownName]:
    name = resource.removeprefix(BLOCK_RESOURCE)
    if resource.startswith(BLOCK_RESOURCE) and "*" not in name and name not in blocks:
        similar = tuple(f"{BLOCK_RESOURCE}{one}" for one in closest_matches(name, blocks, MOST_NEAR))
        yield UnknownName(word=resource, problem=f"There is no block {name} now.", similar=similar)


def _unknown_subjects(subject: str, blocks: Sequence[str]) -> Iterator[UnknownName]:
    kind, mark, name = subject.partition(":")
    if subject in ("*", "type:agent", *IDENTITY_GROUPS) or (kind == "block" and name in blocks):
        return
    if subject in blocks:
        problem = f"{subject} names a person with that id, and applies to the agents that work for them."
        yield UnknownName(word=subject, problem=problem, similar=(f"block:{subject}",))
    elif kind == "block" and mark:
        matching = tuple(f"block:{one}" for one in closest_matches(name, blocks, MOST_NEAR))
        yield UnknownName(word=subject, problem=f"There is no block {name} now.", similar=matching)
    elif matching := tuple(closest_matches(subject, ("type:agent", *(f"block:{one}" for one in blocks)))):
        yield UnknownName(word=subject, problem=f"{subject} names a person with that id.", similar=matching)


def _unknown_tools(policy: Policy, specs: Sequence[ToolSpec]) -> Iterator[UnknownName]:
    matching = [spec for spec in specs if matches_resource(policy, *resource_names(spec))]
    actions = sorted({action.partition(":")[0] for spec in matching for action in _actions_of(spec)})
    if not matching:
        yield UnknownName(
            word=policy.resource,
            problem=f"No tool is called {policy.resource.removeprefix(TOOL)} now. Tools of MCP servers and of other "
            "hosts are known only while the platform runs.",
            similar=_tools_near(policy.resource, specs),
        )
    elif not any(matches_action(policy.action, action) for spec in matching for action in _actions_of(spec)):
        yield UnknownName(
            word=policy.action,
            problem=f"No call of {policy.resource} is a {policy.action}, only: {', '.join(actions)}.",
            similar=(),
        )


def _tools_near(resource: str, specs: Iterable[ToolSpec]) -> tuple[str, ...]:
    """Return similar names: with a source if the name has one, else short names."""
    reply = resource.removeprefix(TOOL)
    known = {spec.name for spec in specs}
    if ":" in reply:
        known = {name for spec in specs for name in (spec.identity, f"{spec.source}:*")}
    return tuple(f"{TOOL}{name}" for name in closest_matches(reply, known, MOST_NEAR))


def _actions_of(spec: ToolSpec) -> tuple[str, ...]:
    return (*actions_of(spec), "network") if spec.network else actions_of(spec)


def _installed(plugins: Plugins) -> Iterator[ToolSpec]:
    for owned in plugins.tools():
        spec = owned.item.spec
        sourced = spec.source != "native:unknown"
        yield spec if sourced else msgspec.structs.replace(spec, source=f"native:{owned.owner}")


async def _listed(bus: Bus, blocks: Iterable[str]) -> AsyncIterator[ToolSpec]:
    """Yield the tools that a tools worker has for any block; none when no worker answers."""
    version = None
    for block in blocks:
        try:
            reply = await bus.call(
                LIST_TOOLS, ListTools(block=block, version=version), timeout=LIST_TIMEOUT, absent=ABSENT
            )
        except RemoteFault:
            continue  # the block's settings cannot be read
        except BusError:
            return
        version = reply.version
        for spec in (*(reply.tools or ()), *reply.own):
            yield spec
