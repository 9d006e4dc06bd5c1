"""Shared blocks: a block is shared by a policy about it and by nothing else, and every denial counts."""

from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from trunkline.contracts.policies.messages import Conditions, Policy, PolicyEffect
from trunkline.policy.block_access import BLOCK_ACTIONS, may_use_block
from trunkline.policy.validation import find_mistake

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def policy(
    effect: PolicyEffect, action: str, resource: str = "block:garden", subject: str = "ann", **conditions: Any
) -> Policy:
    return Policy(
        id=f"{effect}-{action}",
        subject=subject,
        resource=resource,
        action=action,
        effect=effect,
        conditions=Conditions(**conditions),
    )


def actions_of(
    *policies: Policy, id: str = "ann", type: str = "collaborator", block: str = "garden"
) -> list[str]:
    """The actions that the policies permit."""
    return [one for one in BLOCK_ACTIONS if may_use_block(id, type, one, block, policies, NOON)]


def test_a_block_is_not_shared_without_a_policy() -> None:
    """Without policies, with policies of other people and with those of other blocks nothing is permitted."""
    assert actions_of() == []
    assert actions_of(policy("allow", "chat", subject="bob"), policy("allow", "chat", "block:gardens")) == []


@pytest.mark.parametrize("number", range(4))
def test_an_action_includes_those_before_it(number: int) -> None:
    """``chat`` permits reading; a denial of ``chat`` also denies approving and operating."""
    action = BLOCK_ACTIONS[number]
    assert actions_of(policy("allow", action)) == [*BLOCK_ACTIONS[: number + 1]]
    assert actions_of(policy("allow", "*"), policy("deny", action)) == [*BLOCK_ACTIONS[:number]]


@pytest.mark.parametrize(
    "resource", ["*", "b*", "*garden", "tool:*", "memory:/blocks/garden/*", "files:workspace"]
)
def test_a_permission_of_agents_opens_no_block(resource: str) -> None:
    """A general permission was written for tool calls, so it must not open a block to people."""
    for subject in ("*", "ann"):
        for action in ("*", "read"):
            assert actions_of(policy("allow", action, resource, subject)) == []


@pytest.mark.parametrize("resource", ["*", "block:*", "block:gar*", "block:garden"])
@pytest.mark.parametrize("subject", ["*", "ann", "type:collaborator"])
def test_every_denial_counts(resource: str, subject: str) -> None:
    """A denial wins in every order, however general it is."""
    both = policy("allow", "operate"), policy("deny", "read", resource, subject)
    assert all(actions_of(*order) == [] for order in permutations(both))


def test_groups_of_people_can_share_a_block() -> None:
    """Everybody, and all identities of one type."""
    everybody, services = (
        policy("allow", "chat", subject="*"),
        policy("allow", "read", subject="type:service"),
    )
    assert actions_of(everybody, id="bob") == ["read", "chat"]
    assert actions_of(services, id="ci", type="service") == ["read"]
    assert actions_of(services, id="ci") == []


@pytest.mark.parametrize("id", ["block:garden", "type:service", "type:collaborator"])
def test_no_id_stands_for_a_group(id: str) -> None:
    """An authenticator may pass on any user name, and one that looks like a group gains nothing."""
    assert actions_of(policy("allow", "chat", subject=id), id=id, type="external_agent") == []


@pytest.mark.parametrize(
    "conditions",
    [
        {"requires_approval": True},
        {"max_per_day": 100},
        {"until": NOON},
        {"conversation": "c"},
        {"shape": "s"},
    ],
)
def test_a_condition_that_cannot_hold_here_permits_nothing(conditions: dict[str, Any]) -> None:
    """Nobody is asked about a list, and nothing counts the uses of a block."""
    assert actions_of(policy("allow", "operate", **conditions)) == []


def test_a_shared_block_can_have_an_end() -> None:
    """The policy permits until its time."""
    assert actions_of(policy("allow", "read", until=NOON + timedelta(seconds=1))) == ["read"]


@pytest.mark.parametrize("subject", ["type:collaborator", "type:service", "type:external_agent"])
def test_types_of_identities_are_subjects_about_blocks_only(subject: str) -> None:
    """No call has such a subject, so elsewhere it would be a denial without effect."""
    assert find_mistake(policy("allow", "chat", subject=subject)) is None
    assert find_mistake(policy("deny", "*", "tool:*", subject)) is not None
    assert find_mistake(policy("allow", "chat", subject="type:colaborator")) is not None


def test_a_block_is_used_by_its_own_actions_only() -> None:
    """``exec`` on a block would never match, and ``chat`` with a tool neither."""
    assert find_mistake(policy("allow", "exec")) is not None
    assert find_mistake(policy("allow", "chat", "tool:*")) is not None
