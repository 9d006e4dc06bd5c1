"""People who are let in though they are not the owner."""

from collections.abc import Mapping

import msgspec

import trunkline
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.policies.messages import Policy
from trunkline_bus import Bus, key_of

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
