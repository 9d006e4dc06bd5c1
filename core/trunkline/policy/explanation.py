"""An explanation of a block's permissions: each action of its agent, whether it is allowed, and by which rule."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from trunkline.contracts.policies.messages import Policy
from trunkline.policy.engine import AccessRequest, Decision, decide
from trunkline.policy.presets import HOST_NETWORK

PermissionAnswer = Literal["yes", "asks", "no"]

QUESTIONS: tuple[tuple[str, str, str], ...] = (
    ("use tools that only read", "tool:", "read"),
    ("use tools that change something", "tool:", "write:make"),
    ("use tools that send something", "tool:", "send"),
    ("run programs", "tool:", "exec:run"),
    ("run programs that only read", "tool:", "exec:look"),
    ("reach other hosts with tools", "tool:", "network"),
    ("read pages of hosts that it chooses", "external:", "read"),
    ("reach other hosts with programs", "system:network", "network"),
    ("reach this machine's own services with programs", HOST_NETWORK, "network"),
    ("open files of its own folder", "files:block", "read"),
    ("open files of other blocks' folders", "files:workspace", "read"),
    ("open files of the whole system", "files:system", "read"),
)
"""The questions: the text, the resource and the action. ``tool:`` is a tool that no policy names."""

WORDS: dict[PermissionAnswer, str] = {"yes": "yes", "asks": "once a person has approved", "no": "no"}


class PermissionExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """An answer about one permission, with the ids of the deciding policies."""

    what: str
    answer: PermissionAnswer
    by: tuple[str, ...]


def explain_permissions(block: str, policies: Sequence[Policy], now: datetime) -> list[PermissionExplanation]:
    """Explain the permissions of the block's agent by these policies."""
    subjects = frozenset({"*", "type:agent", f"block:{block}"})
    lines = []
    for what, resource, action in QUESTIONS:
        asked = AccessRequest(subjects=subjects, resources=(resource,), action=action)
        decision = decide(asked, policies, now, {})
        lines.append(PermissionExplanation(what=what, answer=_answer(decision), by=decision.by))
    return lines


def describe_policy(policy: Policy) -> str:
    """Return a policy as a sentence without a full stop."""
    conditions = policy.conditions
    phrases = [f"{policy.effect} {policy.subject} to {policy.action} {policy.resource}"]
    if conditions.requires_approval:
        phrases.append("asking each time")
    if conditions.max_per_day is not None:
        phrases.append(f"{conditions.max_per_day} times a day")
    if conditions.time_window:
        phrases.append(f"at {conditions.time_window} {conditions.zone}")
    if conditions.days:
        phrases.append(f"on {', '.join(conditions.days)}")
    if conditions.conversation:
        phrases.append(f"in the conversation {conditions.conversation}")
    if conditions.shape:
        phrases.append("with these arguments")
    if conditions.until is not None:
        phrases.append(f"until {conditions.until:%Y-%m-%d %H:%M %Z}")
    return ", ".join(phrases)


def _answer(decision: Decision) -> PermissionAnswer:
    if not decision.allowed:
        return "no"
    return "asks" if decision.asks else "yes"
