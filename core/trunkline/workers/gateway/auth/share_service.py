"""ShareService: with whom the owner shares a block, and for what. Each share is a policy of the owner."""

from trunkline.contracts.auth.messages import GrantAccess, RevokeAccess
from trunkline.contracts.auth.share_policy import ShareAction, is_share, share_policy
from trunkline.contracts.policies.messages import Policy
from trunkline.errors import ErrorCode
from trunkline.policy.block_access import BLOCK_ACTIONS, BLOCK_RESOURCE
from trunkline.policy.policy_match import matches_resource
from trunkline.workers.gateway.auth.policies import PolicyService
from trunkline.workers.gateway.errors import refusal


class ShareService:
    """Shares blocks. Methods raise Refusal with a fixed code, and BusError when memory does not answer."""

    def __init__(self, policies: PolicyService) -> None:
        self._policies = policies

    async def shared_with(self, block: str) -> tuple[Policy, ...]:
        """Return the policies that share a block, also those that share several blocks, by their ids."""
        policies = (await self._policies.list_policies()).policies
        return tuple(one for one in policies if _shares(one, block))

    async def find(self, block: str, identity: str) -> Policy:
        """Return the share of one block with an identity, the largest one if there are several. Refused with
        ``not_found``.
        """
        return max(await self._shares_of(block, identity), key=_level)

    async def share(self, block: str, identity: str, action: ShareAction, actor: str) -> Policy:
        """Share a block with an identity for this action and no larger one. Refused with ``not_found`` if there is no
        such identity; then nothing changes.
        """
        wanted = GrantAccess(policy=share_policy(block, identity, action), actor=actor)
        await self._policies.checked(wanted)
        for policy in (await self._policies.list_policies(identity)).policies:
            if is_share(policy, block):
                await self._policies.revoke(RevokeAccess(id=policy.id, actor=actor))
        return (await self._policies.grant(wanted)).policy

    async def unshare(self, block: str, identity: str, actor: str) -> None:
        """Stop sharing a block with an identity. Policies about several blocks stay. Refused with ``not_found`` if the
        block is not shared with it.
        """
        for policy in await self._shares_of(block, identity):
            await self._policies.revoke(RevokeAccess(id=policy.id, actor=actor))

    async def _shares_of(self, block: str, identity: str) -> list[Policy]:
        policies = (await self._policies.list_policies(identity)).policies
        found = [one for one in policies if is_share(one, block)]
        if not found:
            raise refusal(ErrorCode.NOT_FOUND, f"{block} is not shared with {identity}.")
        return found


def _shares(policy: Policy, block: str) -> bool:
    is_about_blocks = policy.effect == "allow" and policy.resource.startswith(BLOCK_RESOURCE)
    return is_about_blocks and matches_resource(policy, (f"{BLOCK_RESOURCE}{block}",))


def _level(policy: Policy) -> int:
    """Return how much a policy permits; ``*`` permits everything."""
    return BLOCK_ACTIONS.index(policy.action) if policy.action in BLOCK_ACTIONS else len(BLOCK_ACTIONS)
