"""A block's table of permissions as policies, so that one engine decides about everything."""

from collections.abc import Iterator
from functools import lru_cache

from trunkline.contracts.policies.messages import Conditions, FileScope, PermissionTable, Policy, PolicyEffect
from trunkline.policy.engine import AccessRequest, Decision

DEFAULT_TABLE = PermissionTable(scope="block", approvals="some")
"""What holds when neither the block nor the deployment says anything."""

SCOPES: tuple[FileScope, ...] = ("block", "workspace", "system")
"""From near to far; each has what the ones before it have."""

DEFAULT_ACTIONS = ("read", "write", "send")
"""What every agent may do with its tools, asked about or not. To run programs is a permission of its own."""

READ_ONLY_EXEC = "exec:look"
"""To run a program that only reads, by its argument vector."""

HOST_NETWORK = "system:host-network"
"""This machine's own network, with what listens on its loopback. No table permits it, only the owner for some time."""

PLAN_ACTION = "write:plan"
"""To write what a plan is made of."""


NOTE_ACTION = "write:note"
"""To keep a plan or a list of what is to do, in memory, by a tool that can write nothing else."""


@lru_cache(maxsize=1024)  # every call asks several times
def table_policies(block: str, table: PermissionTable) -> tuple[Policy, ...]:
    """The policies that a table stands for, for the agent of this block. Their ids begin with ``preset:``."""
    return tuple(_table_policies(block, table))


def _table_policies(block: str, table: PermissionTable) -> Iterator[Policy]:
    made = _PolicyBuilder(f"block:{block}", table)
    for action in DEFAULT_ACTIONS:
        yield made.allow(action, "tool:*", action)
    yield made.allow_outward("external", "external:*", "read")
    yield from _programs(made, table)
    yield from _network(made, table)
    for scope in SCOPES[: SCOPES.index(table.scope or "block") + 1]:
        yield made.allow_without_approval(f"scope={scope}", f"files:{scope}", "*")
    yield made.allow_without_approval("memory", "memory:*", "*")
    if table.approvals != "all":
        yield made.allow_without_approval("note", "tool:*", NOTE_ACTION)
    if table.plan:
        if table.approvals != "all":
            yield made.allow_without_approval("plan:write", "tool:*", PLAN_ACTION)
        yield made.deny("plan", "tool:*", "write:make")
        yield made.deny("plan", "tool:*", "send")
        yield made.deny("plan", "tool:*", "exec:run")


def _programs(made: "_PolicyBuilder", table: PermissionTable) -> Iterator[Policy]:
    if table.allow_shell is False:
        yield made.deny("allow_shell=false", "tool:*", "exec")
    elif table.allow_shell or table.scope == "system":
        yield made.allow("exec", "tool:*", "exec")
        if table.approvals != "all":
            yield made.allow_without_approval("exec:look", "tool:*", READ_ONLY_EXEC)


def _network(made: "_PolicyBuilder", table: PermissionTable) -> Iterator[Policy]:
    if table.allow_network is False:
        yield made.deny("allow_network=false", "*", "network")
        return
    yield made.allow_without_approval("network", "tool:*", "network")
    if table.allow_network:
        yield made.allow_without_approval("allow_network", "system:network", "network")


class _PolicyBuilder:
    """Makes policies for one subject. What it allows is asked about as the table wants it."""

    def __init__(self, subject: str, table: PermissionTable) -> None:
        self._subject = subject
        self._approvals = table.approvals or "some"

    def allow(self, name: str, resource: str, action: str) -> Policy:
        asks = self._approvals == "all" or (self._approvals == "some" and action != "read")
        return self._made(name, resource, action, "allow", asks)

    def allow_outward(self, name: str, resource: str, action: str) -> Policy:
        """Allow reading from a host of the model's choice. Reading tells that host something, by the address alone."""
        return self._made(name, resource, action, "allow", self._approvals != "none")

    def allow_without_approval(self, name: str, resource: str, action: str) -> Policy:
        return self._made(name, resource, action, "allow", False)

    def deny(self, name: str, resource: str, action: str) -> Policy:
        return self._made(name, resource, action, "deny", False)

    def _made(self, name: str, resource: str, action: str, effect: PolicyEffect, asks: bool) -> Policy:
        return Policy(
            id=f"preset:{name}",
            subject=self._subject,
            resource=resource,
            action=action,
            effect=effect,
            conditions=Conditions(requires_approval=asks),
        )


def refusal_reason(asked: AccessRequest, decision: Decision) -> str:
    """Why it was refused, in words that say more than the engine knows."""
    path = next(
        (name.removeprefix("memory:") for name in asked.resources if name.startswith("memory:")), None
    )
    if path is not None:
        return f"{path} may not be {'read' if asked.action == 'read' else 'written'}: {decision.why}"
    if decision.by:
        return decision.why
    scope = _scope(asked)
    if scope is not None:
        return f"a path leads outside of {'the workspaces of all blocks' if scope == 'system' else 'its own folder'}."
    if asked.action.startswith("exec"):
        return "it may not run programs."
    return decision.why


def refusal_hint(block: str, asked: AccessRequest, by: tuple[str, ...]) -> str:
    """Return the remedy for a refusal: a command, or the policies to look at."""
    owners = [one for one in by if not one.startswith("preset:")]
    if owners and all(one.startswith("planning-") for one in owners):
        return "It plans in this conversation: a person who approves its plan (approve_plan) ends that"
    if owners:
        return f"The owner's policy {owners[0]} says so"
    if "preset:plan" in by:
        return f"A person can end planning: trunkline permissions {block} --no-plan"
    switch = _permission_option(asked)
    return f"A person can permit it: trunkline permissions {block} {switch}" if switch else ""


def _permission_option(asked: AccessRequest) -> str:
    if asked.action.startswith("exec"):
        return "--allow-shell"
    if asked.action == "network":
        return "--allow-network"
    scope = _scope(asked)
    return f"--scope {scope}" if scope else ""


def _scope(asked: AccessRequest) -> str | None:
    return next((name.removeprefix("files:") for name in asked.resources if name.startswith("files:")), None)
