"""The upper bound of a turn's permissions: the intersection of the permissions of the credential that started the
turn and of every credential that steered it. Pure.
"""

from collections.abc import Iterable

from msgspec import UnsetType

from trunkline.contracts.policies.actor_permissions import ActorPermissions
from trunkline.contracts.turns.journal_messages import JournalEntry, SteerRecorded
from trunkline.contracts.turns.messages import TurnRequested

OWNER_ACTOR, CHANNEL_ACTOR_PREFIX = "owner", "channel:"
"""The actor of the home's token, and the prefix of the owner's channels."""


def initial_permissions(request: TurnRequested) -> ActorPermissions:
    """Return the permissions of the credential that sent a message.

    A request of an earlier version has none recorded: then the owner and the owner's channels have all permissions,
    and every other sender has none.
    """
    if not isinstance(request.permissions, UnsetType):
        return ActorPermissions(request.permissions)
    return ActorPermissions() if is_owner(request.actor) else ActorPermissions(())


def is_owner(actor: str) -> bool:
    """Report whether an actor is the owner, at the home or through one of the owner's channels."""
    return actor == OWNER_ACTOR or actor.startswith(CHANNEL_ACTOR_PREFIX)


def narrowed_by_steering(permissions: ActorPermissions, entry: SteerRecorded) -> ActorPermissions:
    """Return the permissions that remain after a steering message: only those that all senders have.

    An entry of an earlier version without permissions changes nothing.
    """
    if isinstance(entry.permissions, UnsetType):
        return permissions
    return ActorPermissions(permissions.intersect(entry.permissions))


def remaining_permissions(request: TurnRequested, entries: Iterable[JournalEntry]) -> ActorPermissions:
    """Return the permissions that remain after these journal entries of a turn."""
    permissions = initial_permissions(request)
    for entry in entries:
        if isinstance(entry, SteerRecorded):
            permissions = narrowed_by_steering(permissions, entry)
    return permissions
