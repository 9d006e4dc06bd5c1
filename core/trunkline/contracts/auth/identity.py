"""Identities: the people and programs that the owner knows, one file ``identities/<id>.json`` in memory each.

The owner is built in: the identity ``owner`` has no file, so that no file can lock the owner out.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from trunkline.contracts.actors import OWNER

IdentityType = Literal[
    "owner",
    "collaborator",
    "system_agent",
    "background_agent",
    "external_agent",
    "service",
    "economic",
    "federated",
]
IdentityStatus = Literal["active", "suspended", "revoked"]

IDENTITY_FOLDER, IDENTITY_ENDING = "identities", ".json"

LONGEST_NAME = 200
"""The largest number of characters of a display name."""

IDENTITY_ID = r"^[a-z0-9][a-z0-9._-]{0,63}$"
"""The form of an id: no colon, so that no id is the subject ``block:NAME`` or the actor of a channel."""

RESERVED_IDS = (OWNER, "agent", "agents", "block", "type", "trunkline")
"""Ids that mean something else as the subject of a policy or as the actor of a change."""


class IdentityRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A person or program. Only an ``active`` identity may enter; ``suspended`` may be undone, ``revoked`` is final."""

    id: Annotated[str, msgspec.Meta(pattern=IDENTITY_ID)]
    type: IdentityType
    display_name: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
    status: IdentityStatus
    created: Annotated[datetime, msgspec.Meta(tz=True)]


def identity_path(id: str) -> str:
    """Return the path of an identity's file from the memory root."""
    return f"{IDENTITY_FOLDER}/{id}{IDENTITY_ENDING}"


def decode_identity(path: str, content: str) -> IdentityRecord:
    """Return the identity of a file. Raises ValueError if the file is not one: also if its id is not its name, or if it
    claims to be the owner.
    """
    record = msgspec.json.decode(content.encode(errors="replace"), type=IdentityRecord)
    if identity_path(record.id) != path:
        raise ValueError(f"its id {record.id!r} is not its name")
    if record.type == OWNER or record.id in RESERVED_IDS:
        raise ValueError("only the built-in identity is the owner")
    return record
