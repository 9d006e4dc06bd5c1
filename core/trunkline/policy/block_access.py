"""The owner's policies about blocks (``block:NAME``): who may use a block, and for what. Pure.

The actions are those of access tokens, and each includes those before it: whoever may chat may read, and whoever may
not read may not chat either.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec.structs import replace

from trunkline.contracts.policies.messages import Policy
from trunkline.policy.engine import AccessRequest, decide
from trunkline.policy.policy_match import matches_resource

BLOCK_RESOURCE = "block:"
"""The beginning of the name of a block as a resource."""

BLOCK_ACTIONS = ("read", "chat", "approve", "operate")
"""The actions that a policy permits or denies in a block, each with those before it."""

_RESERVED = ("block:", "type:")


def may_use_block(
    id: str, type: str, action: str, block: str, policies: Iterable[Policy], now: datetime
) -> bool:
    """Report whether the policies permit an identity, which is not the owner, this action in a block.

    Only a policy whose resource begins with ``block:`` permits it: no permission of agents, however general, shares a
    block. Every denial counts. Nobody is asked and nothing is counted here, so a permission that needs approval or has
    a daily limit permits nothing.
    """
    # an id of a plugin's authenticator may be any text, and must not stand for a group
    own = frozenset() if id.startswith(_RESERVED) else frozenset({id})
    request = AccessRequest(
        subjects=own | {"*", f"type:{type}"}, resources=(f"{BLOCK_RESOURCE}{block}",), action=action
    )
    decision = decide(request, _about_blocks(policies, action), now, {})
    return decision.allowed and not decision.asks and not decision.counts


def policies_about_block(policies: Iterable[Policy], block: str | None) -> tuple[Policy, ...]:
    """Return the policies that open a block or close it for somebody; of all blocks for None."""
    found = []
    for policy in policies:
        names_blocks = policy.resource.startswith(BLOCK_RESOURCE)
        closes = policy.effect == "deny" and policy.action in ("*", *BLOCK_ACTIONS)
        if block is None:
            counts = names_blocks or (closes and matches_resource(policy, (BLOCK_RESOURCE,)))
        else:
            counts = (names_blocks or closes) and matches_resource(policy, (f"{BLOCK_RESOURCE}{block}",))
        if counts:
            found.append(policy)
    return tuple(found)


def _about_blocks(policies: Iterable[Policy], action: str) -> Iterator[Policy]:
    """Yield the policies that decide about the action in any block, as if each named this action."""
    level = BLOCK_ACTIONS.index(action)
    for policy in policies:
        if policy.effect == "allow":
            counts = policy.resource.startswith(BLOCK_RESOURCE) and policy.action in (
                "*",
                *BLOCK_ACTIONS[level:],
            )
        else:
            counts = policy.action in ("*", *BLOCK_ACTIONS[: level + 1])
        if counts:
            yield replace(policy, action=action)
