"""The policy engine: deny wins, unknown is refused, and order means nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from trunkline.contracts.policies.messages import Conditions, PermissionTable, Policy
from trunkline.policy import AccessRequest, Decision, decide, table_policies

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
"""A Monday."""


def asked(tool: str = "note", action: str = "write:make", **more: Any) -> AccessRequest:
    return AccessRequest(
        subjects=frozenset({"*", "type:agent", "block:main"}),
        resources=(f"tool:{tool}", f"tool:mcp:acme:{tool}"),
        action=action,
        **more,
    )


def allow(
    resource: str = "tool:note", action: str = "*", subject: str = "*", id: str = "a", **conditions: Any
) -> Policy:
    return Policy(
        id=id,
        subject=subject,
        resource=resource,
        action=action,
        effect="allow",
        conditions=Conditions(**conditions),
    )


def deny(
    resource: str = "tool:note", action: str = "*", subject: str = "*", id: str = "d", **conditions: Any
) -> Policy:
    return msgspec.structs.replace(allow(resource, action, subject, id, **conditions), effect="deny")


def decided(*policies: Policy, now: datetime = NOON, used: Any = None, **more: Any) -> Decision:
    return decide(asked(**more), policies, now, used or {})


def test_a_request_without_a_permission_is_refused() -> None:
    """There is no policy, or none for this tool, this action and this agent."""
    assert not decided().allowed
    assert not decided(allow("tool:other"), allow(action="read"), allow(subject="block:other")).allowed


def test_a_denial_wins_over_every_permission() -> None:
    """This holds for the most specific permission and the most general denial."""
    decision = decided(allow(shape="s", conversation="c"), deny("*"), shape="s", conversation="c")
    assert (decision.allowed, decision.by) == (False, ("d",))


@pytest.mark.parametrize(
    ("resource", "fits"),
    [
        ("*", True), ("tool:*", True), ("tool:note", True), ("tool:mcp:acme:*", True), ("tool:*:note", True),
        ("tool:not", False), ("tool:mcp:other:*", False), ("tool:note?", False), ("tool:.*", False), ("", False),
    ],
)  # fmt: skip
def test_only_a_star_is_a_wildcard(resource: str, fits: bool) -> None:
    """Neither regular expressions nor prefixes."""
    assert decided(allow(resource)).allowed is fits


def test_a_tools_source_name_can_deny_it_but_not_permit_it() -> None:
    """Its name at its source counts against it alone: when that was permitted, it may have been another's."""
    renamed = {"aliases": ("tool:search",)}
    assert not decided(allow("tool:search"), **renamed).allowed
    assert not decided(allow(), deny("tool:search"), **renamed).allowed
    assert decided(allow(), **renamed).allowed


def test_another_name_restricts_and_does_not_permit() -> None:
    """A rule that requires approval, or counts, applies under every name; one that permits without approval does not
    apply under another tool's name."""
    renamed = {"aliases": ("tool:search",)}
    assert decided(allow("tool:*"), allow("tool:search", requires_approval=True), **renamed).asks
    assert not decided(allow("tool:search", requires_approval=True), **renamed).allowed
    asking = allow("tool:*", requires_approval=True)
    assert decided(asking, allow("tool:search"), **renamed).asks
    assert decided(asking, allow("tool:search", max_per_day=3), **renamed).asks
    assert not decided(allow("tool:*"), allow("tool:search", max_per_day=0), **renamed).allowed
    ruled = decided(
        allow("tool:search", requires_approval=True), allow("tool:*", shape="s"), shape="s", **renamed
    )
    assert ruled.allowed and not ruled.asks


def test_a_denied_action_covers_its_refined_actions() -> None:
    """A denial of ``exec`` denies a look too; a denial of ``exec:run`` leaves it."""
    assert not decided(allow(), deny(action="exec"), action="exec:look").allowed
    assert decided(allow(), deny(action="exec:run"), action="exec:look").allowed
    assert not decided(allow(), deny(action="exec:run"), action="exec:run").allowed


def test_the_most_specific_permission_decides_about_approval() -> None:
    """A shape before a conversation before a tool before all tools; of equals the one that asks."""
    general = allow("tool:*", id="general", requires_approval=True)
    assert decided(general).asks
    assert not decided(general, allow(id="tool")).asks
    assert decided(allow("tool:*"), allow(id="tool", requires_approval=True)).asks
    assert decided(allow(), allow(id="b", requires_approval=True)).asks
    tool = allow(id="tool", requires_approval=True)
    assert not decided(tool, allow("tool:*", conversation="c"), conversation="c").asks
    assert decided(tool, allow("tool:*", conversation="c"), conversation="other").asks
    assert not decided(tool, allow(shape="s", id="s"), shape="s").asks
    assert decided(tool, allow(shape="s", id="s"), shape="t").asks


def test_a_daily_limit_applies_to_every_permitting_policy() -> None:
    """Once it is used up the call is refused, even if another policy would permit it; the same holds for an unknown
    count."""
    policies = allow("tool:*", id="all"), allow(id="few", max_per_day=2)
    assert decided(*policies, used={"few": 1}).counts == ("few",)
    spent = decided(*policies, used={"few": 2})
    assert (spent.allowed, spent.by) == (False, ("few",))
    assert "2 times a day" in spent.why
    assert "cannot be read" in decided(*policies, used={"few": None}).why
    assert not decided(allow(max_per_day=0)).allowed


@pytest.mark.parametrize(
    ("conditions", "hour", "holds"),
    [
        ({"time_window": "09:00-17:00"}, 9, True),
        ({"time_window": "09:00-17:00"}, 17, False),
        ({"time_window": "22:00-06:00"}, 23, True),
        ({"time_window": "22:00-06:00"}, 5, True),
        ({"time_window": "22:00-06:00"}, 6, False),
        ({"time_window": "14:00-15:00", "zone": "Europe/Berlin"}, 13, True),
        ({"time_window": "22:00-06:00", "days": ("sun",)}, 5, True),
        ({"time_window": "22:00-06:00", "days": ("mon",)}, 5, False),
        ({"days": ("mon",)}, 0, True),
        ({"days": ("tue", "wed")}, 0, False),
        ({"until": NOON}, 11, True),
        ({"until": NOON}, 12, False),
    ],
)
def test_a_policy_counts_in_its_time(conditions: Any, hour: int, holds: bool) -> None:
    """Windows in a time zone and past midnight, on the days on which they begin; ``until`` is not included."""
    now = NOON.replace(hour=hour)
    assert decided(allow(**conditions), now=now).allowed is holds
    assert decided(allow("*", id="all"), deny(**conditions), now=now).allowed is not holds


@pytest.mark.parametrize("zone", ["Nowhere/Land", "../../etc/passwd", "", "/etc/localtime"])
def test_an_unknown_time_zone_permits_nothing_and_always_denies(zone: str) -> None:
    """Fails closed."""
    window = {"time_window": "00:00-23:59", "zone": zone}
    assert not decided(allow(**window)).allowed
    assert not decided(allow("*"), deny(**window)).allowed


# Properties ---------------------------------------------------------------------------------------------------

CONDITIONS = st.builds(
    Conditions,
    requires_approval=st.booleans(),
    max_per_day=st.none() | st.integers(0, 3),
    time_window=st.none() | st.sampled_from(["00:00-12:00", "11:00-13:00", "13:00-11:00"]),
    days=st.sampled_from([(), ("mon",), ("tue", "sun")]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "Nowhere/Land"]),
    until=st.none() | st.sampled_from([NOON, NOON + timedelta(hours=1)]),
    conversation=st.none() | st.sampled_from(["c", "d"]),
    shape=st.none() | st.sampled_from(["s", "t"]),
)
POLICIES = st.builds(
    Policy,
    id=st.sampled_from("abcdefgh"),
    subject=st.sampled_from(["*", "type:agent", "block:main", "block:other", "anna"]),
    resource=st.sampled_from(["*", "tool:*", "tool:note", "tool:mcp:acme:*", "tool:other"]),
    action=st.sampled_from(["*", "read", "write", "write:make", "exec", "exec:look"]),
    effect=st.sampled_from(["allow", "deny"]),
    conditions=CONDITIONS,
)
REQUESTS = st.builds(
    asked,
    tool=st.sampled_from(["note", "other"]),
    action=st.sampled_from(["read", "write:make", "exec:run", "exec:look"]),
    conversation=st.sampled_from(["c", "e"]),
    shape=st.sampled_from(["s", "u"]),
)
USED = st.dictionaries(st.sampled_from("abcdefgh"), st.none() | st.integers(0, 4))


@examples(300, deadline=None)
@given(request=REQUESTS, policies=st.lists(POLICIES, max_size=8), used=USED, data=st.data())
def test_the_order_of_policies_is_irrelevant(
    request: AccessRequest, policies: list[Policy], used: Any, data: Any
) -> None:
    """The same decision, by the same policies, in any order."""
    other = data.draw(st.permutations(policies))
    assert decide(request, policies, NOON, used) == decide(request, other, NOON, used)


@examples(300, deadline=None)
@given(request=REQUESTS, policies=st.lists(POLICIES, max_size=8), used=USED, one=POLICIES)
def test_an_added_denial_never_permits_more(
    request: AccessRequest, policies: list[Policy], used: Any, one: Policy
) -> None:
    """A refused call stays refused; a permitted one needs approval as before."""
    before = decide(request, policies, NOON, used)
    after = decide(request, [*policies, msgspec.structs.replace(one, effect="deny")], NOON, used)
    assert after == before or (not after.allowed and not after.asks)


@examples(300, deadline=None)
@given(request=REQUESTS, policies=st.lists(POLICIES, max_size=8), used=USED)
def test_deny_wins(request: AccessRequest, policies: list[Policy], used: Any) -> None:
    """A denial of everything leaves nothing permitted, with any other policies; and without a permission nothing is
    permitted."""
    assert not decide(request, [*policies, deny("*")], NOON, used).allowed
    denials = [msgspec.structs.replace(policy, effect="deny") for policy in policies]
    assert not decide(request, denials, NOON, used).allowed


@examples(200, deadline=None)
@given(request=REQUESTS, policies=st.lists(POLICIES, max_size=6))
def test_a_decision_survives_being_written_down(request: AccessRequest, policies: list[Policy]) -> None:
    """A policy read back from its file decides the same."""
    again = msgspec.json.decode(msgspec.json.encode(policies), type=list[Policy])
    assert again == policies
    assert decide(request, again, NOON, {}) == decide(request, policies, NOON, {})


# Presets ------------------------------------------------------------------------------------------------------


def outcome(table: PermissionTable, action: str, resource: str = "tool:note") -> str:
    request = AccessRequest(
        subjects=frozenset({"*", "type:agent", "block:main"}), resources=(resource,), action=action
    )
    decision = decide(request, list(table_policies("main", table)), NOON, {})
    return "refused" if not decision.allowed else "asks" if decision.asks else "runs"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({}, {"read": "runs", "write:make": "asks", "send": "asks", "exec:run": "refused", "network": "runs"}),
        ({"approvals": "all"}, {"read": "asks", "write:make": "asks"}),
        ({"approvals": "none"}, {"read": "runs", "write:make": "runs", "send": "runs", "exec:run": "refused"}),
        ({"allow_shell": True}, {"exec:run": "asks", "exec:look": "runs"}),
        ({"allow_shell": True, "approvals": "all"}, {"exec:run": "asks", "exec:look": "asks"}),
        ({"scope": "system"}, {"exec:run": "asks"}),
        ({"scope": "system", "allow_shell": False}, {"exec:run": "refused", "exec:look": "refused"}),
        ({"allow_network": False}, {"network": "refused", "read": "runs"}),
        (
            {"plan": True, "allow_shell": True},
            {"read": "runs", "write:make": "refused", "write:plan": "runs", "send": "refused", "exec:run": "refused",
             "exec:look": "runs"},
        ),
    ],
)  # fmt: skip
def test_a_permission_table_expands_to_its_policies(table: Any, expected: dict[str, str]) -> None:
    """The presets: approvals, programs, network, planning."""
    found = {action: outcome(PermissionTable(**table), action) for action in expected}
    assert found == expected


@pytest.mark.parametrize(
    ("table", "expected"),
    [({}, "asks"), ({"approvals": "all"}, "asks"), ({"approvals": "none"}, "runs"), ({"plan": True}, "asks")],
)
def test_a_host_that_the_model_chose_is_asked_about(table: Any, expected: str) -> None:
    """Reading from the host reveals data to it by the address alone; a rule for that host decides."""
    asked = PermissionTable(**table)
    assert outcome(asked, "read", "external:example.com") == expected


@pytest.mark.parametrize(
    ("table", "reached"),
    [
        ({}, {"block"}),
        ({"scope": "workspace"}, {"block", "workspace"}),
        ({"scope": "system"}, {"block", "workspace", "system"}),
    ],
)
def test_reach_of_file_permissions(table: Any, reached: set[str]) -> None:
    """Each scope includes the narrower ones."""
    found = {
        scope
        for scope in ("block", "workspace", "system")
        if outcome(PermissionTable(**table), "write:make", f"files:{scope}") == "runs"
    }
    assert found == reached
