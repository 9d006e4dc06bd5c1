"""The policy engine. A denial takes precedence over every permission. A request that no policy permits is refused.
The most specific permission decides whether a person is asked.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from trunkline.contracts.policies.messages import Policy
from trunkline.policy.policy_match import applies, permits, specificity


class AccessRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for an action.

    ``subjects`` and ``resources`` are all names of the caller and of the target. ``aliases`` are further
    names of the target: a policy may deny, require approval or count by an alias, but never permit by one.
    ``action`` may be refined after a colon: ``exec:look`` is an ``exec``, and a policy may name either.
    """

    subjects: frozenset[str]
    resources: tuple[str, ...]
    action: str
    aliases: tuple[str, ...] = ()
    conversation: str = ""
    shape: str = ""


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The decision about an access request.

    ``asks`` is true if a person must approve first. ``why`` is a sentence, ``by`` the ids of the deciding policies,
    ``hint`` the remedy for a refusal. ``counts`` are the policies with a daily limit of which this request uses one.
    """

    allowed: bool
    asks: bool = False
    why: str = ""
    by: tuple[str, ...] = ()
    hint: str = ""
    counts: tuple[str, ...] = ()


def decide(
    request: AccessRequest, policies: Iterable[Policy], now: datetime, used: Mapping[str, int | None]
) -> Decision:
    """Return the decision about a request. The order of the policies does not matter.

    ``used`` is the number of uses today of each policy with a daily limit. A policy that is missing in ``used`` was
    not used. None means that the count cannot be read; then the request is refused.
    """
    applying = [policy for policy in policies if applies(policy, request, now)]
    denying = [policy for policy in applying if policy.effect == "deny"]
    if denying:
        return Decision(allowed=False, why="a policy denies it.", by=_ids(denying))
    permitting = [policy for policy in applying if permits(policy, request)]
    if not permitting:
        return Decision(allowed=False, why="nothing permits it.")
    limited = [policy for policy in applying if policy.conditions.max_per_day is not None]
    exhausted = [policy for policy in limited if _is_used_up(policy, used)]
    if exhausted:
        exceeded = min(exhausted, key=lambda policy: (policy.id, policy.conditions.max_per_day or 0))
        return Decision(allowed=False, why=_quota_reason(exceeded, used), by=_ids(exhausted))
    ranked = [policy for policy in applying if policy in permitting or policy.conditions.requires_approval]
    first = max(map(specificity, ranked))
    deciding = [policy for policy in ranked if specificity(policy) == first]
    asks = any(policy.conditions.requires_approval for policy in deciding)
    return Decision(
        allowed=True,
        asks=asks,
        why="a policy permits it once a person has approved." if asks else "a policy permits it.",
        by=_ids(deciding),
        counts=_ids(limited),
    )


def combine(decisions: Iterable[Decision]) -> Decision:
    """Return one decision about all requests of a call: the first refusal, or a permission that asks if any
    of them does."""
    made = list(decisions)
    refusal = next((decision for decision in made if not decision.allowed), None)
    if refusal is not None:
        return refusal
    requiring_approval = [decision for decision in made if decision.asks]
    return Decision(
        allowed=bool(made),
        asks=bool(requiring_approval),
        why=(requiring_approval or made)[0].why if made else "nothing was requested.",
        by=tuple(dict.fromkeys(id for decision in requiring_approval or made for id in decision.by)),
        counts=tuple(dict.fromkeys(id for decision in made for id in decision.counts)),
    )


def _is_used_up(policy: Policy, used: Mapping[str, int | None]) -> bool:
    most, times = policy.conditions.max_per_day, used.get(policy.id, 0)
    return times is None or (most is not None and times >= most)


def _quota_reason(policy: Policy, used: Mapping[str, int | None]) -> str:
    if used.get(policy.id, 0) is None:
        return "a policy limits it to a number of times a day, and today's count cannot be read now."
    return f"a policy limits it to {policy.conditions.max_per_day} times a day, and today's limit is reached."


def _ids(policies: Iterable[Policy]) -> tuple[str, ...]:
    return tuple(sorted({policy.id for policy in policies}))
