"""Authentication, admission of messages, and additional HTTP routes."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.blocks.paths import block_folder
from trunkline.contracts.gateway.messages import SendMessage

OWN_MEMORY = "memory:own"
"""The permission whose extent depends on the identity and on the block."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a caller. ``type`` is one of a policy's identity types (owner, collaborator, service, ...).

    The authenticator decides who is an owner. Anyone else uses only the blocks that a policy of the owner shares with
    this ``id``, with everybody, or with this type.

    ``permissions`` bound what the tool calls of the caller's turns may do, for every type: ``tools:read_*``,
    ``memory:/finances/*``, or ``*`` for everything. ``memory:own`` is all of memory for an owner with all blocks, and
    for anyone else the folder of the block that the turn is in. They only restrict. A permission that cannot be parsed
    permits nothing.

    ``scope`` is what the request may do; anyone but an owner has at most ``operate``. ``token_id`` is the access token
    that the request presents, "" for the token of the home and for the credentials of a plugin. ``blocks`` are the only
    blocks that the token reaches; None means no restriction.
    """

    id: str
    type: str = "collaborator"
    permissions: tuple[str, ...] = (OWN_MEMORY, "tools:*")
    scope: TokenScope | None = None
    token_id: str = ""
    blocks: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Set the scope that an authenticator did not name: an owner may do everything, anyone else may chat."""
        if self.scope is None:
            msgspec.structs.force_setattr(self, "scope", default_scope(self.type))

    def may(self, scope: TokenScope) -> bool:
        """Report whether the scope of the request includes ``scope``."""
        return self.scope is not None and self.scope.includes(scope)

    def permissions_in(self, block: str) -> tuple[str, ...]:
        """Return the permissions of a turn in a block, with the extent of ``memory:own``."""
        is_whole = self.type == "owner" and self.blocks is None
        own = "memory:*" if is_whole else f"memory:/{block_folder(block)}/*"
        return tuple(own if one == OWN_MEMORY else one for one in self.permissions)


def default_scope(type: str) -> TokenScope:
    """Return the scope of an identity whose authenticator names none."""
    return TokenScope.OWNER if type == "owner" else TokenScope.CHAT


OWNER = Identity(id="owner", type="owner")
"""The identity of a caller that presents the token of the home."""


def is_home_owner(identity: Identity) -> bool:
    """Report whether a caller presents the token of the home, or an access token that permits as much."""
    return msgspec.structs.replace(identity, token_id="") == OWNER


class Authenticator(Protocol):
    """Maps a request's credentials to an identity.

    Guarantees: the authenticators are asked in the order of the plugins, for each request that does not carry the token
    of the home. The first identity counts. A request with more than one credential is refused before any authenticator
    is asked.

    Not guaranteed: that every authenticator is asked, because an earlier one may decide.
    """

    name: str

    async def __call__(self, headers: Mapping[str, str]) -> Identity | None:
        """Return the identity, or None if the credentials are not of this authenticator's kind. Header names are lower
        case. An id that is empty, is ``*`` or begins with ``block:``, ``type:`` or ``channel:`` is refused, and so is
        ``owner`` for anyone but the owner. So is whomever the owner has suspended or revoked as an identity of this id.

        Raises:
            Exception: the request is refused, and no other authenticator is asked. The log names the plugin and the
                type of the exception.
        """
        ...


class AdmissionRule(Protocol):
    """Decides whether a message is accepted: rate limits, quotas, allow lists.

    Guarantees: a message is accepted only if every rule returns. A repeated message is checked again. A request for
    vectors or speech is checked like a message with its text, and a recording like a message without text.

    Not guaranteed: that a message is accepted because the rules return. Its block, its conversation or the disk may
    still refuse it.
    """

    name: str

    async def __call__(self, message: SendMessage, identity: Identity) -> None:
        """Return to accept the message.

        Raises:
            Refusal: to refuse the message; the sender sees the code and the sentence. An unknown code becomes
                ``forbidden``. Any other exception refuses the message with ``forbidden``, and is logged.
        """
        ...


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """A route below ``/x/<plugin>/``. ``endpoint`` is a Starlette endpoint. A body that is larger than the gateway's
    own routes accept for text is refused with ``too_large`` (413) while the endpoint reads it.

    ``scope`` is what the token of a request must permit. Only the owner has the default: Trunkline cannot know what a
    plugin's route shows or changes, and does not check blocks for it. So a token for some blocks is refused. A
    ``public`` route needs no credential.

    The path of a ``by_block`` route has the parameter ``{block}``. The gateway admits whoever may do ``scope`` in that
    block, as it does for its own routes: a block that the sender may not read is 404, and a smaller right is 403.
    """

    path: str
    methods: tuple[str, ...]
    endpoint: Callable[[Any], Awaitable[Any]]
    public: bool = False
    scope: TokenScope = TokenScope.OWNER
    by_block: bool = False


@dataclass(frozen=True, slots=True)
class StaticSite:
    """A web app: a folder of files that the gateway serves at ``/`` to everybody who reaches the port, without a
    credential. ``folder`` is absolute, and its ``index.html`` is the page at ``/``.

    Guarantees: the gateway reads the files itself and runs no code of the plugin. It serves the files that are there
    when it starts, and no link, hidden file or file of an unknown type. A file in a folder of routes, such as ``api``,
    is not served. Each response has a Content-Security-Policy under which a page loads scripts, styles, fonts and data
    from the gateway only.

    Not guaranteed: that the site is served, because only the first site counts.

    Files below ``immutable`` may be cached forever: their names must change with their content. ``NAME.gz`` beside a
    file is its compressed form.
    """

    folder: Path
    immutable: str = "assets"
