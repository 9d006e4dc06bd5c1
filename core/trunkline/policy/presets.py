"""Translates a block's permission table to policies, so that one engine makes all decisions."""

from collections.abc import Iterator
from functools import lru_cache

from trunkline.contracts.policies.messages import Conditions, FileScope, PermissionTable, Policy, PolicyEffect
from trunkline.policy.engine import AccessRequest, Decision

DEFAULT_TABLE = PermissionTable(scope="block", approvals="some")
"""The permissions without any setting of the block or the deployment."""

SCOPES: tuple[FileScope, ...] = ("block", "workspace", "system")
"""The scopes of files from near to far; each includes those before it."""

DEFAULT_ACTIONS = ("read", "write", "send")
"""The actions that every agent's tools may have, with or without approval. Running programs needs a separate
permission.
"""

READ_ONLY_EXEC = "exec:look"
"""The action of running a program that only reads, recognised by its argument vector."""

HOST_NETWORK = "system:host-network"
"""This machine's own network, including its loopback. No permission table grants it; only the owner does, for a
limited time.
"""

PLAN_ACTION = "write:plan"
"""The action of writing a plan."""


NOTE_ACTION = "write:note"
"""The action of writing a plan or a to-do list to memory with a tool that can write nothing else."""


AGENT_ACTION = "write:agent"
"""The action of giving a task to an agent of its own. What that agent does is decided call by call."""


@lru_cache(maxsize=1024)  # each call evaluates the table several times
def table_policies(block: str, table: PermissionTable) -> tuple[Policy, ...]:
    """Return the policies of a permission table, for the agent of this block. Their ids begin with
    ``preset:``."""
    return tuple(_table_policies(block, table))


def _table_policies(block: str, table: PermissionTable) -> Iterator[Policy]:
    builder = _PolicyBuilder(f"block:{block}", table)
    for action in DEFAULT_ACTIONS:
        yield builder.allow(action, "tool:*", action)
    yield builder.allow_outward("external", "external:*", "read")
    yield from _programs(builder, table)
    yield from _network(builder, table)
    for scope in SCOPES[: SCOPES.index(table.scope or "block") + 1]:
        yield builder.allow_without_approval(f"scope={scope}", f"files:{scope}", "*")
    yield builder.allow_without_approval("memory", "memory:*", "*")
    if table.approvals != "all":
        yield builder.allow_without_approval("note", "tool:*", NOTE_ACTION)
        yield builder.allow_without_approval("agent", "tool:*", AGENT_ACTION)
    if table.plan:
        if table.approvals != "all":
            yield builder.allow_without_approval("plan:write", "tool:*", PLAN_ACTION)
        yield builder.deny("plan", "tool:*", "write:make")
        yield builder.deny("plan", "tool:*", AGENT_ACTION)
        yield builder.deny("plan", "tool:*", "send")
        yield builder.deny("plan", "tool:*", "exec:run")


def _programs(builder: "_PolicyBuilder", table: PermissionTable) -> Iterator[Policy]:
    if table.allow_shell is False:
        yield builder.deny("allow_shell=false", "tool:*", "exec")
    elif table.allow_shell or table.scope == "system":
        yield builder.allow("exec", "tool:*", "exec")
        if table.approvals != "all":
            yield builder.allow_without_approval("exec:look", "tool:*", READ_ONLY_EXEC)


def _network(builder: "_PolicyBuilder", table: PermissionTable) -> Iterator[Policy]:
    if table.allow_network is False:
        yield builder.deny("allow_network=false", "*", "network")
        return
    yield builder.allow_without_approval("network", "tool:*", "network")
    if table.allow_network:
        yield builder.allow_without_approval("allow_network", "system:network", "network")


class _PolicyBuilder:
    """Builds policies for one subject. The table decides which permissions need approval."""

    def __init__(self, subject: str, table: PermissionTable) -> None:
        self._subject = subject
        self._approvals = table.approvals or "some"

    def allow(self, name: str, resource: str, action: str) -> Policy:
        asks = self._approvals == "all" or (self._approvals == "some" and action != "read")
        return self._build(name, resource, action, "allow", asks)

    def allow_outward(self, name: str, resource: str, action: str) -> Policy:
        """Allow reading from a host that the model chooses, with approval unless approvals are off: the address alone
        can disclose information to that host.
        """
        return self._build(name, resource, action, "allow", self._approvals != "none")

    def allow_without_approval(self, name: str, resource: str, action: str) -> Policy:
        return self._build(name, resource, action, "allow", False)

    def deny(self, name: str, resource: str, action: str) -> Policy:
        return self._build(name, resource, action, "deny", False)

    def _build(self, name: str, resource: str, action: str, effect: PolicyEffect, asks: bool) -> Policy:
        return Policy(
            id=f"preset:{name}",
            subject=self._subject,
            resource=resource,
            action=action,
            effect=effect,
            conditions=Conditions(requires_approval=asks),
        )


def refusal_reason(request: AccessRequest, decision: Decision) -> str:
    """Return the reason of a refusal, with details that the engine does not have."""
    path = next(
        (name.removeprefix("memory:") for name in request.resources if name.startswith("memory:")), None
    )
    if path is not None:
        return f"{path} may not be {'read' if request.action == 'read' else 'written'}: {decision.why}"
    if decision.by:
        return decision.why
    scope = _scope(request)
    if scope is not None:
        return f"a path leads outside of {'the workspaces of all blocks' if scope == 'system' else 'its own folder'}."
    if request.action.startswith("exec"):
        return "it may not run programs."
    return decision.why


def refusal_hint(block: str, request: AccessRequest, by: tuple[str, ...]) -> str:
    """Return the remedy for a refusal: a command, or the policies to look at."""
    owners = [one for one in by if not one.startswith("preset:")]
    if owners and all(one.startswith("planning-") for one in owners):
        return "The agent is in plan mode; approving its plan (approve_plan) ends it"
    if owners:
        return f"The owner's policy {owners[0]} forbids it"
    if "preset:plan" in by:
        return f"A person can end planning: trunkline permissions {block} --no-plan"
    switch = _permission_option(request)
    return f"A person can permit it: trunkline permissions {block} {switch}" if switch else ""


def _permission_option(request: AccessRequest) -> str:
    if request.action.startswith("exec"):
        return "--allow-shell"
    if request.action == "network":
        return "--allow-network"
    scope = _scope(request)
    return f"--scope {scope}" if scope else ""


def _scope(request: AccessRequest) -> str | None:
    return next(
        (name.removeprefix("files:") for name in request.resources if name.startswith("files:")), None
    )
