"""Checks policies for words that no call can ever match. Such a mistake would make a denial ineffective. Pure.

A name of a block or tool that does not exist is not a mistake here, because the block or tool may be created later.
"""

import re
from difflib import get_close_matches
from typing import get_args

import msgspec

from trunkline.contracts.auth.identity import IdentityType
from trunkline.contracts.blocks.paths import BLOCK_NAME
from trunkline.contracts.policies.messages import Policy
from trunkline.policy.block_access import BLOCK_ACTIONS, BLOCK_RESOURCE
from trunkline.policy.policy_match import matches_resource

BLOCK_SUBJECT = re.compile(f"block:{BLOCK_NAME}")

CALL_ACTIONS = (
    "*", "read", "write", "write:make", "write:plan", "write:note", "write:agent", "send", "exec", "exec:run",
    "exec:look", "network",
)  # fmt: skip
"""All actions of calls, including refined ones."""

RESOURCE_PREFIXES = ("tool:", "memory:/", "external:", BLOCK_RESOURCE)
"""The prefixes of resources without a fixed list."""

FIXED_RESOURCES = ("files:block", "files:workspace", "files:system", "system:network", "system:host-network")
"""All other resources."""

IDENTITY_GROUPS = frozenset(f"type:{one}" for one in get_args(IdentityType))
"""The subjects that stand for all identities of a type. Only policies about blocks have them."""

INVALID_SUBJECTS = ("", "agent", "agents", "owner", "block", "type")
"""Subjects that no caller has."""


class PolicyMistake(msgspec.Struct, frozen=True):
    """The field with the mistake, and the problem as a sentence."""

    field: str
    problem: str


def find_mistake(policy: Policy) -> PolicyMistake | None:
    """Return the first word of a policy that no call, and no use of a block, can ever match; None if there is none."""
    is_group = policy.resource.startswith(BLOCK_RESOURCE) and policy.subject in IDENTITY_GROUPS
    if not is_group and (said := _subject_fault(policy.subject)):
        return PolicyMistake("subject", said)
    if not _is_resource(policy):
        return PolicyMistake(
            "resource", f"{policy.resource!r} is not a resource: no call would ever match this policy."
        )
    if policy.action not in _actions_of(policy.resource):
        return PolicyMistake(
            "action", f"{policy.action!r} is not an action: no call would ever match this policy."
        )
    return None


def _subject_fault(subject: str) -> str:
    """Return the fault of a subject; "" for none. A person's id may be any text that does not look like a misspelt
    ``block:`` or ``type:`` subject.
    """
    if subject in ("*", "type:agent") or BLOCK_SUBJECT.fullmatch(subject):
        return ""
    kind, colon, _ = subject.partition(":")
    if subject.startswith("block:"):
        return f"{subject!r} does not name a block."
    misspelt = bool(colon) and bool(get_close_matches(kind.strip().lower(), ("block", "type"), 1, 0.7))
    if (
        misspelt
        or subject.strip().lower() in INVALID_SUBJECTS
        or subject != subject.strip()
        or "*" in subject
    ):
        return f"{subject!r} is not a subject of policies."
    return ""


def _actions_of(resource: str) -> tuple[str, ...]:
    """Return the actions that a resource can have."""
    if resource.startswith(BLOCK_RESOURCE):
        return ("*", *BLOCK_ACTIONS)
    literal, star, _ = resource.partition("*")
    either = bool(star) and BLOCK_RESOURCE.startswith(literal)
    return (*CALL_ACTIONS, *BLOCK_ACTIONS) if either else CALL_ACTIONS


def _is_resource(policy: Policy) -> bool:
    """Report whether the pattern can match the name of any resource."""
    literal, star, _ = policy.resource.partition("*")
    if matches_resource(policy, FIXED_RESOURCES):
        return True
    begun = any(literal.startswith(kind) and (star or literal != kind) for kind in RESOURCE_PREFIXES)
    return (
        begun
        or literal == "memory:/"
        or (bool(star) and any(kind.startswith(literal) for kind in RESOURCE_PREFIXES))
    )
