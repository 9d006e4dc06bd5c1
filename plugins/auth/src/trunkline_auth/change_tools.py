"""The tools that change who may enter and what they may do. The owner approves each call, whatever is permitted."""

from typing import Any, Literal

import msgspec

import trunkline

IdentityKind = Literal[
    "collaborator", "system_agent", "background_agent", "external_agent", "service", "economic", "federated"
]


@trunkline.tool(effect="write", administers=True)
async def auth_create_identity(
    context: trunkline.ToolContext, id: str, display_name: str = "", type: IdentityKind = "collaborator"
) -> dict[str, Any]:
    """Add a person or program, who may do nothing until something is granted. They enter by a code or a token that the
    owner makes at the terminal (trunkline pair --as ID).

    Args:
        id: A short name of small letters, digits, dots and dashes.
        display_name: The name that people see.
        type: The kind of person or program.
    """
    made = await context.administration.create_identity(id, type, display_name)
    return dict(msgspec.to_builtins(made))


@trunkline.tool(effect="write", administers=True)
async def auth_grant(
    context: trunkline.ToolContext,
    subject: str,
    action: str,
    resource: str,
    effect: Literal["allow", "deny"] = "allow",
    note: str = "",
) -> str:
    """Add a rule that allows or denies somebody an action, for instance chat in block:garden.

    Args:
        subject: An identity, block:NAME (its agent), type:collaborator, or * for everybody.
        action: For a block read, chat, approve or operate; otherwise read, write, send, exec or network.
        resource: block:NAME, tool:NAME, memory:/PATH, external:HOST or system:network; * stands for any text.
        effect: allow or deny. A denial wins over every permission.
        note: Why.
    """
    added = await context.administration.grant(subject, action, resource, effect=effect, note=note)
    return f"{added.policy.id}: {added.says}."


@trunkline.tool(effect="write", administers=True)
async def auth_revoke(context: trunkline.ToolContext, policy_id: str) -> str:
    """Remove a rule.

    Args:
        policy_id: The id of the rule, as auth_export shows it.
    """
    removed = await context.administration.revoke(policy_id)
    return f"Removed {removed.policy.id}: {removed.says}."
