"""Sharing a block with an identity: one policy, whose id names both. Pure."""

from datetime import UTC, datetime
from typing import Literal

from trunkline.contracts.actors import OWNER
from trunkline.contracts.policies.messages import Policy
from trunkline_bus import key_of

ShareAction = Literal["read", "chat", "approve", "operate"]
"""What an identity may do in a shared block. Each includes those before it."""

ID_PREFIX = "shared-"


def share_policy(block: str, identity: str, action: ShareAction) -> Policy:
    """Return the policy that shares a block with an identity."""
    return Policy(
        id=f"{ID_PREFIX}{key_of(block, identity)[:16]}",
        subject=identity,
        resource=f"block:{block}",
        action=action,
        effect="allow",
        note=f"{block} is shared with {identity}",
        created=datetime.now(UTC),
        created_by=OWNER,
    )


def is_share(policy: Policy, block: str) -> bool:
    """Report whether a policy shares this block."""
    return policy.effect == "allow" and policy.resource == f"block:{block}"
