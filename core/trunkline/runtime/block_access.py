"""BlockAccess: which blocks an identity may use, and for what, by the owner's policies and the scope of its token.

Everything that the gateway shows or accepts belongs to a block, so this is the only question that it asks about a
person (ADR 79). A block that an identity may not read does not exist for it: the answer is ``not_found``.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from trunkline.contracts.actors import OWNER
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.policies.messages import Policy
from trunkline.errors import FIXED_SENTENCES, ErrorCode, ToolError
from trunkline.policy.block_access import BLOCK_RESOURCE, may_use_block
from trunkline.runtime.owner_policies import POLICY_FOLDER, owner_policy_cache
from trunkline_bus import Bus, Refusal

log = logging.getLogger(__name__)

LOSS_SECONDS = 0.5
"""Seconds between two looks whether somebody who watches a block may still read it."""


@dataclass(frozen=True, slots=True)
class BlockRights:
    """The rights of one identity in each block, by the policies of one moment."""

    identity: Identity
    policies: Sequence[Policy] = ()

    @property
    def is_unlimited(self) -> bool:
        """Report whether the identity may read every block, so that no list needs a filter."""
        return (
            self.identity.type == "owner"
            and self.identity.blocks is None
            and self.identity.may(TokenScope.READ)
        )

    def may(self, action: TokenScope, block: str) -> bool:
        """Report whether the identity may do this in a block.

        The owner may, as far as the token goes. Anyone else needs a policy of the owner that shares the block.
        """
        who = self.identity
        if not who.may(action) or (who.blocks is not None and block not in who.blocks):
            return False
        if who.type == "owner":
            return True
        if action is TokenScope.OWNER:
            return False
        return may_use_block(who.id, who.type, action.value, block, self.policies, utc_now())

    def highest(self, block: str) -> TokenScope | None:
        """Return the largest action that the identity may do in a block, which includes those before it; None for a
        block that it may not read.
        """
        return next((action for action in reversed(TokenScope) if self.may(action, block)), None)

    def require(self, action: TokenScope, block: str) -> None:
        """Return if the identity may do this in a block.

        Refused with ``forbidden`` if it may at least read the block, else with ``not_found``, as if there were no such
        block.
        """
        if not self.may(TokenScope.READ, block):
            raise _refusal(ErrorCode.NOT_FOUND)
        if not self.may(action, block):
            raise _refusal(ErrorCode.FORBIDDEN)


class BlockAccess:
    """Answers what an identity may do in a block. Call ``open`` before use.

    A change of the policies applies to the next question. Until then, and for some minutes while memory does not
    answer, the policies that were read last apply. While no policies are known, or one of them cannot be read, which
    might be a denial, only the owner may do anything: every other question is refused with ``storage_failure``.
    """

    def __init__(self, bus: Bus) -> None:
        self._policies = owner_policy_cache(bus)
        self.open = self._policies.open
        self.close = self._policies.close

    async def rights_of(self, identity: Identity) -> BlockRights:
        """Return what an identity may do now."""
        return BlockRights(identity, () if identity.type == "owner" else await self._known())

    async def may_steer(self, sender: str, actor: str) -> bool:
        """Report whether a message of one person may go into a turn of another: not if a policy is about what agents do
        for one of the two, because it would not count for the calls that both of them cause.
        """
        people = {sender, actor} - {OWNER}
        if sender == actor or not people:
            return True
        return not any(
            policy.subject in people and not policy.resource.startswith(BLOCK_RESOURCE)
            for policy in await self._known()
        )

    async def may(self, identity: Identity, action: TokenScope, block: str) -> bool:
        """Report whether an identity may do this in a block."""
        return (await self.rights_of(identity)).may(action, block)

    async def wait_until_lost(
        self, identity: Identity, block: str, action: TokenScope = TokenScope.READ
    ) -> None:
        """Return as soon as an identity may no longer do this in a block, or its policies cannot be read. The owner
        never loses a block."""
        if identity.type == "owner":
            await anyio.sleep_forever()
        while True:
            await anyio.sleep(LOSS_SECONDS)
            try:
                if not await self.may(identity, action, block):
                    return
            except Refusal:
                return

    async def require(self, identity: Identity, action: TokenScope, block: str) -> None:
        """Return if an identity may do this in a block. Refused as by ``BlockRights.require``."""
        (await self.rights_of(identity)).require(action, block)

    async def _known(self) -> Sequence[Policy]:
        """Return the policies. Refused with ``storage_failure`` while they cannot be read."""
        try:
            return await self._policies.get(POLICY_FOLDER)
        except ToolError as error:
            log.error("nobody but the owner is let in, because the policies cannot be read: %s", error)
            raise _refusal(ErrorCode.STORAGE_FAILURE) from error


def _refusal(code: ErrorCode) -> Refusal:
    return Refusal(code, FIXED_SENTENCES[code])
