"""The authorization of calls, by the block's permission table and the owner's policies. Only decides.

The policy stage refuses denied calls, the path stage checks the scopes of files, and the gatekeeper asks a person.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from trunkline._util.egress.urls import parse_url
from trunkline._util.paths import check_path, is_absolute_path
from trunkline.contracts.policies.messages import FileScope, PermissionTable, Policy
from trunkline.contracts.tools.messages import CallTool, ToolSpec
from trunkline.contracts.tools.tool import ToolContext, ToolInvocation
from trunkline.errors import ToolError
from trunkline.policy import (
    SCOPES,
    AccessRequest,
    Decision,
    combine,
    decide,
    refusal_hint,
    refusal_reason,
    shape_of,
    table_policies,
)
from trunkline.policy.explanation import WORDS, explain_permissions
from trunkline.policy.presets import AGENT_ACTION, HOST_NETWORK, NOTE_ACTION, PLAN_ACTION, READ_ONLY_EXEC
from trunkline.policy.read_only_programs import is_read_only_call
from trunkline.runtime.owner_policies import OwnerPolicies
from trunkline.workers.tools.memory_requests import memory_access_requests, memory_paths_of
from trunkline.workers.tools.path_locks import invocation_paths, path_arguments
from trunkline.workers.tools.path_resolution import resolved_arguments
from trunkline.workers.tools.path_scopes import scopes_of
from trunkline.workers.tools.quotas import Quotas
from trunkline.workers.tools.sandboxes import ProgramBounds

FAR_SCOPES = SCOPES[1:]

OWNER_ACTOR = "owner"
"""The owner as an actor. A permission for the owner does not extend to the owner's agents; theirs names the
agent or its block."""


class _Caller(NamedTuple):
    """The caller: the agent of a block, working for an actor, in a conversation."""

    block: str
    actor: str
    conversation: str


class CallAuthorizer:
    """Decides about calls, by the permission table of each block and the owner's policies.

    Every method raises ToolError when the table or a policy cannot be read, so the call is refused.
    """

    def __init__(
        self,
        table_of: Callable[[str], Awaitable[PermissionTable]],
        owner_policies: Callable[[], Awaitable[OwnerPolicies]],
        quotas: Quotas,
    ) -> None:
        self.table_of = table_of
        self._owner_policies = owner_policies
        self._quotas = quotas

    async def decide(self, invocation: ToolInvocation) -> Decision:
        """Return whether the call is allowed, and whether it needs a person's approval."""
        policies = await self.policies(invocation.context.block)
        requests = [*_call_requests(invocation, policies), *_memory_requests(invocation, policies)]
        return await self._decided(invocation.context.block, requests, policies)

    async def decide_tools(
        self, specs: Sequence[ToolSpec], block: str, actor: str, conversation: str = ""
    ) -> list[Decision]:
        """Return for each tool whether any call of it is allowed, and whether it needs a person's approval, as far as
        this is known without arguments.
        """
        policies, now = await self.policies(block), datetime.now(UTC)
        who = _Caller(block, actor, conversation)
        return [_first_allowed(block, _possible_requests(spec, who), policies, now) for spec in specs]

    async def summary(self, context: ToolContext) -> list[tuple[str, str]]:
        """Return the block's general permissions: each activity with its permission."""
        lines = explain_permissions(context.block, await self.policies(context.block), datetime.now(UTC))
        return [(line.what, WORDS[line.answer]) for line in lines]

    async def use_quota(self, invocation: ToolInvocation) -> None:
        """Count the call where a policy sets a daily limit. Raises ToolError when the limit is reached."""
        policies = await self.policies(invocation.context.block)
        if not any(policy.conditions.max_per_day is not None for policy in policies):
            return
        decision = await self.decide(invocation)
        for policy in policies:
            if policy.id in decision.counts:
                await self._quotas.take(policy, datetime.now(UTC))

    async def require(self, invocation: ToolInvocation) -> None:
        """Raise ToolError when the call is not allowed."""
        refuse_unless_allowed(invocation, await self.decide(invocation))

    async def path_scopes(self, spec: ToolSpec, call: CallTool) -> frozenset[FileScope]:
        """Return the scopes beyond the block's own folder that files of a call of this tool may reach."""
        policies, now = await self.policies(call.block), datetime.now(UTC)
        request = AccessRequest(
            subjects=agent_subjects(call.block, call.actor),
            resources=(),
            action=_action(spec, {}),
            conversation=call.conversation,
        )
        return frozenset(
            scope
            for scope in FAR_SCOPES
            if decide(replace(request, resources=(f"files:{scope}",)), policies, now, {}).allowed
        )

    async def program_bounds(self, call: CallTool) -> ProgramBounds:
        """Return the limits of the programs that a call runs."""
        request = AccessRequest(
            subjects=agent_subjects(call.block, call.actor),
            resources=("system:network",),
            action="network",
            conversation=call.conversation,
        )
        policies, now = await self.policies(call.block), datetime.now(UTC)
        decision = decide(request, policies, now, {})
        host_network = decide(replace(request, resources=(HOST_NETWORK,)), policies, now, {}).allowed
        return ProgramBounds(
            network=decision.allowed or host_network,
            host="granted" if host_network else "no",
            seconds=(await self.table_of(call.block)).max_timeout,
            hint=refusal_hint(call.block, request, decision.by),
        )

    async def decide_memory(self, call: CallTool, path: str, action: str, whole: bool) -> Decision:
        """Return whether a path of memory may be read or written; with ``whole`` including everything below
        it."""
        policies, now = await self.policies(call.block), datetime.now(UTC)
        request = AccessRequest(
            subjects=agent_subjects(call.block, call.actor),
            resources=(),
            action=action,
            conversation=call.conversation,
        )
        return combine(
            decide(one, policies, now, {}) for one in memory_access_requests(request, path, whole, policies)
        )

    async def policies(self, block: str) -> list[Policy]:
        """Return all policies: the owner's, and those that the block's table is translated to."""
        return [*table_policies(block, await self.table_of(block)), *await self._owner_policies()]

    async def _decided(self, block: str, requests: list[AccessRequest], policies: list[Policy]) -> Decision:
        now, used = datetime.now(UTC), dict[str, int | None]()
        decisions = [(request, decide(request, policies, now, used)) for request in requests]
        decision = combine(decision for _, decision in decisions)
        if decision.counts:
            used = await self._quotas.used([one for one in policies if one.id in decision.counts], now)
            decisions = [(request, decide(request, policies, now, used)) for request in requests]
            decision = combine(decision for _, decision in decisions)
        if decision.allowed:
            return replace(decision, asks=decision.asks and not _is_preapproved(decisions[0][1], policies))
        refused = next(request for request, one in decisions if not one.allowed)
        return replace(
            decision, why=refusal_reason(refused, decision), hint=refusal_hint(block, refused, decision.by)
        )


def _is_preapproved(of_tool: Decision, policies: list[Policy]) -> bool:
    """Report whether a person has granted a lasting approval for calls of this shape."""
    granting = (policy for policy in policies if policy.id in of_tool.by)
    return not of_tool.asks and any(policy.conditions.shape is not None for policy in granting)


def refuse_unless_allowed(invocation: ToolInvocation, decision: Decision) -> None:
    """Raise ToolError for a refusal. It names the call, the reason, and the way to permit it."""
    if decision.allowed:
        return
    spec, block = invocation.spec, invocation.context.block
    hint = f" {decision.hint}." if decision.hint else ""
    raise ToolError(
        f"{spec.name} ({spec.effect}) was refused to the block {block}: {decision.why}{hint} Nothing was run.",
        kind="permission_denied",
    )


def _first_allowed(
    block: str, alternatives: Iterable[list[AccessRequest]], policies: list[Policy], now: datetime
) -> Decision:
    """Return the first decision that allows the call, or the first decision when none does."""
    refusals = list[Decision]()
    for requests in alternatives:
        decisions = [(request, decide(request, policies, now, {})) for request in requests]
        refused = next(((request, one) for request, one in decisions if not one.allowed), None)
        if refused is None:
            return combine(one for _, one in decisions)
        request, one = refused
        refusals.append(
            replace(one, why=refusal_reason(request, one), hint=refusal_hint(block, request, one.by))
        )
    return refusals[0]


def _possible_requests(spec: ToolSpec, who: _Caller) -> Iterator[list[AccessRequest]]:
    """Yield the access requests of a call of the tool, one list for each action that a call may have."""
    own, others = resource_names(spec)
    for action in actions_of(spec):
        request = AccessRequest(
            subjects=agent_subjects(who.block, who.actor),
            resources=own,
            aliases=others,
            action=action,
            conversation=who.conversation,
        )
        yield [request, replace(request, action="network")] if spec.network else [request]


def actions_of(spec: ToolSpec) -> tuple[str, ...]:
    """Return the actions that calls of the tool may have, apart from reaching other hosts."""
    match spec.effect:
        case "exec":
            return ("exec:run", READ_ONLY_EXEC) if spec.argv or spec.read_only else ("exec:run",)
        case "write":
            empty = _action(spec, {})  # a tool that writes notes does so with any arguments
            return (
                (empty,)
                if empty in (NOTE_ACTION, AGENT_ACTION)
                else ("write:make", PLAN_ACTION)
                if spec.in_plan_mode
                else ("write:make",)
            )
        case effect:
            return (effect,)


def _call_requests(invocation: ToolInvocation, policies: list[Policy]) -> Iterator[AccessRequest]:
    """Yield the access requests for the tool, its hosts and files. The shape is computed only if a policy has
    one."""
    spec, context = invocation.spec, invocation.context
    shaped = any(policy.conditions.shape is not None for policy in policies)
    own, others = resource_names(spec)
    request = AccessRequest(
        subjects=agent_subjects(context.block, context.actor),
        resources=own,
        aliases=others,
        action=_action(spec, invocation.arguments),
        conversation=context.conversation,
        shape=shape_of(spec, resolved_arguments(spec, invocation.arguments)) if shaped else "",
    )
    yield request
    if spec.network:
        yield replace(request, action="network")
    yield from _host_requests(spec, invocation.arguments, request)
    for path in invocation_paths(invocation):
        for scope in scopes_of(path, context.workspace):
            yield replace(request, resources=(f"files:{scope}",), aliases=())


def _memory_requests(invocation: ToolInvocation, policies: list[Policy]) -> Iterator[AccessRequest]:
    """Yield the access requests for the memory paths among the arguments."""
    spec, context = invocation.spec, invocation.context
    request = AccessRequest(
        subjects=agent_subjects(context.block, context.actor),
        resources=(),
        action="read" if spec.effect == "read" else "write",
        conversation=context.conversation,
    )
    for path, whole in memory_paths_of(invocation):
        yield from memory_access_requests(request, path, whole, policies)


def _host_requests(
    spec: ToolSpec, arguments: Mapping[str, Any], request: AccessRequest
) -> Iterator[AccessRequest]:
    """Yield the same request for the host of each URL in the arguments. A permission for a name includes its ``www.``
    name. A denial of the ``www.`` name includes the name, because the site may redirect there.

    Raises:
        UrlRefused: an argument is not a URL.
    """
    for name in spec.urls:
        if isinstance(text := arguments.get(name), str):
            page = parse_url(text)
            hosts = dict.fromkeys((page.host, page.site))
            yield replace(
                request,
                resources=(*request.resources, *(f"external:{host}" for host in hosts)),
                aliases=(*request.aliases, f"external:www.{page.site}"),
            )


def resource_names(spec: ToolSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tool's names in policies, and its aliases. An alias can deny but not permit, because other
    tools may have the same one."""
    others = (f"tool:{name}" for name in (spec.own_name, *spec.aliases) if name)
    return (f"tool:{spec.name}", f"tool:{spec.identity}"), tuple(others)


def agent_subjects(block: str, actor: str) -> frozenset[str]:
    """Return the subjects of the agent of a block that works for an actor."""
    names = {"*", "type:agent", f"block:{block}"}
    return frozenset(names if actor == OWNER_ACTOR else {*names, actor})


def _action(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Return the action of the call, as far as the arguments determine it; otherwise the widest possible action."""
    if spec.effect == "exec":
        return READ_ONLY_EXEC if is_read_only_call(spec, arguments) else "exec:run"
    if spec.effect == "write":
        if _only_delegates(spec):
            return AGENT_ACTION
        if spec.in_plan_mode and not (spec.paths or spec.memory_paths or spec.memory_trees or spec.is_remote):
            return NOTE_ACTION
        paths = list(path_arguments(spec, arguments))
        return PLAN_ACTION if spec.in_plan_mode and all(map(_is_plan, paths)) else "write:make"
    return spec.effect


def _only_delegates(spec: ToolSpec) -> bool:
    """Report whether the tool can do nothing but give tasks to agents. A tool of another host, or of a program that is
    no plugin, may claim so of itself, and is not believed.
    """
    return spec.delegates and not (spec.origin or spec.paths or spec.memory_paths or spec.memory_trees)


def _is_plan(path: str) -> bool:
    """Report whether a path is a plan: Markdown below ``plans/`` in the block's folder."""
    if is_absolute_path(path):
        return False
    names = check_path(path).split("/")
    return len(names) > 1 and names[0] == "plans" and names[-1].endswith(".md")
