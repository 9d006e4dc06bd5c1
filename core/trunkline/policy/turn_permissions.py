"""The upper bound of what the tool calls of a turn may do: what was given to the credential that began it, and to
each that steered it since. Pure.
"""

from collections.abc import Iterable

from msgspec import UnsetType

from trunkline.contracts.policies.actor_permissions import ActorPermissions
from trunkline.contracts.turns.messages import JournalEntry, SteerRecorded, TurnRequested

OWNER_ACTOR, CHANNEL_ACTOR_PREFIX = "owner", "channel:"
"""Who asks with the home's token, and how the owner's channels are named."""


def initial_permissions(request: TurnRequested) -> ActorPermissions:
    """Return the permissions of the credential that sent a message.

    An earlier version did not say: the owner and the owner's channels had everything, and of anybody else nobody knows.
    """
    if not isinstance(request.permissions, UnsetType):
        return ActorPermissions(request.permissions)
    known = request.actor == OWNER_ACTOR or request.actor.startswith(CHANNEL_ACTOR_PREFIX)
    return ActorPermissions() if known else ActorPermissions(())


def narrowed_by_steering(permissions: ActorPermissions, entry: SteerRecorded) -> ActorPermissions:
    """Return the permissions that are left once somebody steered: a turn follows the words of all of them, and what
    one of them may not have done is not done. An earlier version did not say who it was.
    """
    if isinstance(entry.permissions, UnsetType):
        return permissions
    return ActorPermissions(permissions.intersect(entry.permissions))


def remaining_permissions(request: TurnRequested, entries: Iterable[JournalEntry]) -> ActorPermissions:
    """Return the permissions that are left to a turn after these entries of its journal."""
    permissions = initial_permissions(request)
    for entry in entries:
        if isinstance(entry, SteerRecorded):
            permissions = narrowed_by_steering(permissions, entry)
    return permissions
