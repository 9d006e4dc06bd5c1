"""The tools that show who may enter and what they may do. None of them shows a token, a key or a hash of one."""

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec

import trunkline
from trunkline import ToolError
from trunkline.api.memory import read_text

Days = Annotated[int, msgspec.Meta(ge=1, le=31)]
Entries = Annotated[int, msgspec.Meta(ge=1, le=200)]


@trunkline.tool(effect="read")
async def auth_whoami(context: trunkline.ToolContext) -> dict[str, Any]:
    """Return for whom you work in this turn: their identity, whether that is the owner, your block, and the scopes that
    limit your calls.
    """
    return {
        "identity": context.actor,
        "is_owner": context.administration.is_owner,
        "agent_of_block": context.block,
        "permissions": list(context.permissions.scopes),
    }


@trunkline.tool(effect="read")
async def auth_check(
    context: trunkline.ToolContext, resource: str, action: str, identity: str = ""
) -> dict[str, Any]:
    """Return whether something is permitted, and why. A denial wins, and what nothing permits is refused.

    Args:
        resource: What it is done to: block:NAME, tool:NAME, memory:/PATH, external:HOST or system:network.
        action: read, write, send, exec or network; for a block read, chat, approve or operate.
        identity: Who would do it. Left out: you, in this turn; for a block, the person for whom you work.
    """
    found = await context.administration.check(resource, action, identity)
    return {"allowed": found.allowed, "needs_approval": found.asks, "why": found.why, "by": list(found.by)}


@trunkline.tool(effect="read")
async def auth_export(context: trunkline.ToolContext) -> dict[str, Any]:
    """Return all identities, policies and access tokens, without credentials. Only for the owner."""
    own = context.administration
    policies = await own.policies()
    exported = {
        "identities": await own.identities(),
        "policies": policies.policies,
        "unreadable": policies.unreadable,
        "tokens": await own.tokens(),
    }
    return dict(msgspec.to_builtins(exported))


@trunkline.tool(effect="read")
async def auth_list_identities(context: trunkline.ToolContext) -> list[dict[str, Any]]:
    """Return the people and programs that the owner knows, with type and status. Only for the owner."""
    return list(msgspec.to_builtins(await context.administration.identities()))


@trunkline.tool(effect="read", untrusted_output=True, derived=True)
async def auth_audit(
    context: trunkline.ToolContext, days: Days = 1, limit: Entries = 50
) -> list[dict[str, Any]]:
    """Return sign-ins, refused ones too, and changes of identities, tokens and policies, the newest first. Only for the
    owner.

    Args:
        days: How many days back, today included.
        limit: The number of entries.
    """
    if not context.administration.is_owner:
        raise ToolError("Only the owner may see the audit log of sign-ins.", kind="permission_denied")
    today = datetime.now(UTC).date()
    found: list[dict[str, Any]] = []
    for back in range(days):
        text = await read_text(context.memory, f"/audit/{today - timedelta(days=back)}.jsonl")
        entries = [entry for line in text.splitlines() if (entry := _entry(line))["event"] == "auth"]
        found += reversed(entries)
    return found[:limit]


def _entry(line: str) -> dict[str, Any]:
    """Return what of an entry is told: who did what, when and why."""
    known = json.loads(line)
    return {name: known[name] for name in ("event", "at", "status", "actor", "why", "count") if name in known}
