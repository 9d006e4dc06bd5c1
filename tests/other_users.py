"""People who are let in though they are not the owner."""

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

import trunkline
from trunkline.contracts.auth.identity import IdentityRecord, IdentityStatus, identity_path
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.subjects import TOKEN_BUCKET, TOKENS_CHANGED
from trunkline.contracts.auth.tokens import AccessTokenRecord, TokensChanged
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.policies.messages import Policy
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.testing.platform import Platform
from trunkline_bus import Bus, key_of, new_id

HEADER = "x-visitor"


class Visitors:
    """A plugin that knows these people; who sends the name of one in ``HEADER`` is that one."""

    name = "visitors"

    def __init__(self, *known: Identity) -> None:
        self._known = {one.id: one for one in known}

    async def __call__(self, headers: Mapping[str, str]) -> Identity | None:
        return self._known.get(headers.get(HEADER, ""))

    @trunkline.hookimpl
    def trunkline_authenticators(self) -> list[object]:
        return [self]


GUEST = Identity(id="guest", type="collaborator")


async def share(bus: Bus, action: str = "chat", *, subject: str = "*", block: str = "*") -> None:
    """Share blocks by a policy: those of this name with whoever the subject stands for."""
    await write_policy(bus, Policy(subject=subject, resource=f"block:{block}", action=action, effect="allow"))


async def write_policy(bus: Bus, policy: Policy) -> None:
    """Store a policy of the owner."""
    path = f"policies/{key_of(policy.subject, policy.resource, policy.action, policy.effect)[:16]}.json"
    request = WriteManyMemory(files={path: msgspec.json.encode(policy).decode()}, actor="owner")
    await bus.call(MEMORY_WRITE_MANY, request, timeout=20.0)


async def issue_token(
    running: Platform, identity: str = "owner", **fields: Any
) -> tuple[str, AccessTokenRecord]:
    """Store a new token behind the gateway's back; return its text and its record."""
    token = f"tl_{secrets.token_urlsafe(32)}"
    given: dict[str, Any] = {
        "scope": TokenScope.CHAT,
        "kind": "bearer",
        "mac": TokenKey(running.home.token_key).mac(token),
        "created": datetime.now(UTC),
        "created_by": "owner",
    }
    record = AccessTokenRecord(id=new_id("tok"), identity=identity, **(given | fields))
    await store_token(running.bus, record)
    return token, record


async def store_token(bus: Bus, record: AccessTokenRecord) -> None:
    """Store the record of a token, and announce it."""
    await bus.kv(TOKEN_BUCKET).put(record.id, record)
    await bus.publish(TOKENS_CHANGED, TokensChanged(ids=(record.id,)))


async def write_identity(bus: Bus, id: str, status: IdentityStatus = "active") -> None:
    """Store a collaborator in memory."""
    record = IdentityRecord(
        id=id, type="collaborator", display_name=id.title(), status=status, created=datetime.now(UTC)
    )
    files = {identity_path(id): msgspec.json.encode(record).decode()}
    await bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=files, actor="owner"), timeout=20.0)
