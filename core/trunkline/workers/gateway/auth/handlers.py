"""Handlers for the operations about identities, tokens and pairing: one row for each."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from trunkline.contracts.auth import subjects as auth
from trunkline.contracts.auth.identity import IdentityRecord
from trunkline.contracts.auth.linked_senders import LinkedSenderList, UnlinkSender
from trunkline.contracts.auth.messages import (
    IdentityList,
    IdentityView,
    PairingsCancelled,
    PasskeyList,
    PasskeysRemoved,
    RemovePasskey,
    TokenIssued,
    TokenList,
)
from trunkline.contracts.auth.passkeys import passkey_view
from trunkline.workers.gateway.auth.auth_service import AuthService
from trunkline.workers.gateway.auth.token_service import NewToken, issued
from trunkline.workers.gateway.errors import refuse_errors
from trunkline_bus import Endpoint, Request, Service

Req = TypeVar("Req")
Rep = TypeVar("Rep")


async def register_auth_handlers(own: AuthService, service: Service) -> None:
    """Register every endpoint. The row of an operation binds it to the service that does the work."""

    async def add(endpoint: Endpoint[Req, Rep], handler: Callable[[Request[Req]], Awaitable[Rep]]) -> None:
        await service.add(endpoint, refuse_errors(handler))

    await add(auth.LIST_IDENTITIES, lambda asked: _identities(own))
    await add(auth.CREATE_IDENTITY, lambda asked: _view(own.identities.create(asked.data)))
    await add(auth.CHANGE_IDENTITY, lambda asked: _view(own.change_identity(asked.data)))
    await add(auth.ISSUE_TOKEN, lambda asked: _issued(own.tokens.issue(asked.data)))
    await add(auth.LIST_TOKENS, lambda asked: _tokens(own, asked.data.identity))
    await add(auth.REVOKE_TOKEN, lambda asked: own.revoke_token(asked.data))
    await add(auth.ROTATE_KEY, lambda asked: own.rotate_key(asked.data.actor))
    await add(auth.LIST_PASSKEYS, lambda asked: _passkeys(own, asked.data.identity))
    await add(auth.REMOVE_PASSKEY, lambda asked: _removed(own, asked.data))
    await add(auth.CHECK_ACCESS, lambda asked: own.policies.check(asked.data))
    await add(auth.LIST_POLICIES, lambda asked: own.policies.list_policies(asked.data.subject))
    await add(auth.GRANT_ACCESS, lambda asked: own.policies.grant(asked.data))
    await add(auth.REVOKE_ACCESS, lambda asked: own.policies.revoke(asked.data))
    await add(auth.START_PAIRING, lambda asked: own.pairings.start(asked.data))
    await add(auth.START_LINKING, lambda asked: own.senders.start(asked.data))
    await add(auth.LIST_SENDERS, lambda asked: senders_of(own, asked.data.channel))
    await add(auth.UNLINK_SENDER, lambda asked: _unlinked(own, asked.data))
    await add(auth.CANCEL_PAIRINGS, lambda asked: _cancelled(own.pairings.cancel(asked.data.actor)))


async def _identities(own: AuthService) -> IdentityList:
    return IdentityList(identities=await own.identities.list_identities())


async def _tokens(own: AuthService, identity: str | None) -> TokenList:
    return TokenList(tokens=await own.tokens.list_tokens(identity))


async def _passkeys(own: AuthService, identity: str | None) -> PasskeyList:
    return PasskeyList(passkeys=tuple(passkey_view(one) for one in await own.passkeys.records(identity)))


async def _removed(own: AuthService, request: RemovePasskey) -> PasskeysRemoved:
    return await own.remove_passkeys([await own.passkeys.find(request.id)], request.actor)


async def senders_of(own: AuthService, channel: str) -> LinkedSenderList:
    """Return the linked senders of a channel."""
    return LinkedSenderList(senders=await own.senders.senders(channel))


async def _unlinked(own: AuthService, request: UnlinkSender) -> LinkedSenderList:
    await own.senders.unlink(request)
    return await senders_of(own, request.channel)


async def _view(identity: Awaitable[IdentityRecord]) -> IdentityView:
    return IdentityView(identity=await identity)


async def _issued(token: Awaitable[NewToken]) -> TokenIssued:
    return issued(await token)


async def _cancelled(codes: Awaitable[int]) -> PairingsCancelled:
    return PairingsCancelled(codes=await codes)
