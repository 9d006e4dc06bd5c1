"""The matching of policies to requests, and the specificity of a policy."""

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from trunkline.contracts.policies.messages import DAYS, Conditions, Policy

if TYPE_CHECKING:
    from trunkline.policy.engine import AccessRequest

Specificity = tuple[bool, bool, bool, bool, int, int, int]


def applies(policy: Policy, request: "AccessRequest", now: datetime) -> bool:
    """Report whether the policy applies to the request now. A restricting policy applies by any name of the target.

    With an unknown time zone a denial applies at all times, and a permission never applies.
    """
    if policy.subject not in request.subjects or not matches_action(policy.action, request.action):
        return False
    if not matches_resource(policy, request.resources, request.aliases):
        return False
    conditions = policy.conditions
    if conditions.conversation not in (None, request.conversation):
        return False
    if conditions.shape not in (None, request.shape):
        return False
    if conditions.until is not None and now >= conditions.until:
        return False
    try:
        return _within(conditions, now)
    except ValueError:
        return policy.effect == "deny"


def permits(policy: Policy, request: "AccessRequest") -> bool:
    """Report whether a policy that applies permits the request. It must match a proper name, not an alias."""
    return policy.effect == "allow" and matches_resource(policy, request.resources)


def _restricts(policy: Policy) -> bool:
    conditions = policy.conditions
    return policy.effect == "deny" or conditions.requires_approval or conditions.max_per_day is not None


def matches_resource(policy: Policy, resources: tuple[str, ...], aliases: tuple[str, ...] = ()) -> bool:
    """Report whether the policy matches one of these names; a restricting policy also matches aliases."""
    names = resources + aliases if _restricts(policy) else resources
    return any(_pattern(policy.resource).fullmatch(name) for name in names)


def specificity(policy: Policy) -> Specificity:
    """Return the specificity of a policy: a call shape outranks a conversation, a temporary policy a
    permanent one, a single tool all tools, a block all blocks."""
    literal = policy.resource.replace("*", "")
    subjects = {"*": 0}
    kinds = {"type": 1, "block": 2}
    subject = subjects.get(policy.subject, kinds.get(policy.subject.partition(":")[0], 3))
    return (
        policy.conditions.shape is not None,
        policy.conditions.conversation is not None,
        policy.conditions.until is not None,
        "*" not in policy.resource,
        len(literal),
        subject,
        0 if policy.action == "*" else len(policy.action),
    )


def quota_day(conditions: Conditions, now: datetime) -> str:
    """Return the day on which a daily limit is counted. Raise ValueError for an unknown time zone."""
    return now.astimezone(load_zone(conditions.zone)).date().isoformat()


@lru_cache(maxsize=256)
def load_zone(name: str) -> tzinfo:
    """Return the time zone. Raise ValueError if it is unknown."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"The time zone {name!r} is not known here.") from error


def _within(conditions: Conditions, now: datetime) -> bool:
    if conditions.time_window is None and not conditions.days:
        return True
    here = now.astimezone(load_zone(conditions.zone))
    begin, end = map(time.fromisoformat, (conditions.time_window or "00:00-00:00").split("-"))
    start = here
    if begin < end:
        inside = begin <= here.time() < end
    else:  # past midnight, or the whole day
        inside = here.time() >= begin or here.time() < end
        if here.time() < end:
            start = here - timedelta(days=1)
    return inside and (not conditions.days or DAYS[start.weekday()] in conditions.days)


def matches_action(pattern: str, action: str) -> bool:
    """Report whether a policy about ``pattern`` covers this action: ``exec`` covers ``exec:look``."""
    return pattern in ("*", action) or action.startswith(f"{pattern}:")


def nested_resource(resource: str, folder: str) -> str | None:
    """Return a name that begins with ``folder`` and that the policy's resource matches; None if there is none."""
    literal, star, rest = resource.partition("*")
    if literal.startswith(folder):
        return resource.replace("*", "")
    if star and folder.startswith(literal):
        return folder + rest.replace("*", "")
    return None


@lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)
