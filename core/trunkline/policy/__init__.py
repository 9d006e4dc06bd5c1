"""The policy engine, which decides whether an action is allowed and whether a person is asked. It uses no clock, file
or bus.
"""

from trunkline.contracts.policies.actor_permissions import ActorPermissions
from trunkline.policy.call_shape import bound_arguments, shape_of
from trunkline.policy.engine import AccessRequest, Decision, combine, decide
from trunkline.policy.policy_match import nested_resource, quota_day
from trunkline.policy.presets import DEFAULT_TABLE, SCOPES, refusal_hint, refusal_reason, table_policies

__all__ = [
    "DEFAULT_TABLE",
    "SCOPES",
    "AccessRequest",
    "ActorPermissions",
    "Decision",
    "bound_arguments",
    "combine",
    "decide",
    "nested_resource",
    "quota_day",
    "refusal_hint",
    "refusal_reason",
    "shape_of",
    "table_policies",
]
