"""The policy engine: may this be done, and must a person be asked? Pure: no clock, no file, no bus."""

from trunkline.contracts.policies.actor_permissions import ActorPermissions
from trunkline.policy.call_shape import bound_by, shape_of
from trunkline.policy.engine import Asked, Decision, decide, together
from trunkline.policy.policy_match import day_of, inside
from trunkline.policy.presets import SCOPES, STANDARD, hint, preset, reason

__all__ = [
    "SCOPES",
    "STANDARD",
    "ActorPermissions",
    "Asked",
    "Decision",
    "bound_by",
    "day_of",
    "decide",
    "hint",
    "inside",
    "preset",
    "reason",
    "shape_of",
    "together",
]
