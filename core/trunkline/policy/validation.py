"""What no call can ever meet in a policy, by its words alone: a slip there would leave a denial without force. Pure.

A block or a tool that is not there may come later, and is no slip here.
"""

import re
from difflib import get_close_matches

import msgspec

from trunkline.contracts.policies.messages import Policy
from trunkline.policy.policy_match import names

BLOCK = re.compile(r"block:[a-z0-9][a-z0-9-]{0,31}")

ACTIONS = (
    "*", "read", "write", "write:make", "write:plan", "write:note", "send", "exec", "exec:run", "exec:look", "network",
)  # fmt: skip
"""All that may be done, also as the engine refines it."""

OPEN = ("tool:", "memory:/", "external:")
"""How the names of resources begin of which there may be any number."""

CLOSED = ("files:block", "files:workspace", "files:system", "system:network", "system:host-network")
"""All other resources."""

NOBODY = ("", "agent", "agents", "owner", "block", "type")
"""What nobody is called whom a rule can bind."""


class Slip(msgspec.Struct, frozen=True):
    """The field that it is in, and what is wrong with it, as a sentence."""

    field: str
    said: str


def slip_in(policy: Policy) -> Slip | None:
    """The first word of a policy that no call can ever meet; None where there is none."""
    if said := _subject_fault(policy.subject):
        return Slip("subject", said)
    if not _is_resource(policy):
        return Slip("resource", f"{policy.resource!r} is no resource: no call would ever meet this rule.")
    if policy.action not in ACTIONS:
        return Slip("action", f"{policy.action!r} is no action: no call would ever meet this rule.")
    return None


def _subject_fault(subject: str) -> str:
    """What is wrong with a subject; "" for nothing. A person's id may be any text that is no misspelt other form."""
    if subject in ("*", "type:agent") or BLOCK.fullmatch(subject):
        return ""
    kind, colon, _ = subject.partition(":")
    if subject.startswith("block:"):
        return f"{subject!r} names no block."
    misspelt = bool(colon) and bool(get_close_matches(kind.strip().lower(), ("block", "type"), 1, 0.7))
    if misspelt or subject.strip().lower() in NOBODY or subject != subject.strip() or "*" in subject:
        return f"{subject!r} is nobody whom a rule can bind."
    return ""


def _is_resource(policy: Policy) -> bool:
    """Whether the pattern can stand for the name of any resource."""
    literal, star, _ = policy.resource.partition("*")
    if names(policy, CLOSED):
        return True
    begun = any(literal.startswith(kind) and (star or literal != kind) for kind in OPEN)
    return begun or literal == "memory:/" or (bool(star) and any(kind.startswith(literal) for kind in OPEN))
