"""Authentication, admission of messages, and additional HTTP routes."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from trunkline.contracts.gateway.messages import SendMessage


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a caller. ``type`` is one of a policy's identity types (owner, collaborator, service, ...).

    Only an owner can decide about calls, revoke grants, change blocks and rename conversations. The authenticator
    decides who is an owner.

    ``permissions`` bound what the tool calls of the caller's turns may do, for every type: ``tools:read_*``,
    ``memory:/finances/*``, or ``*`` for everything. They only restrict. A permission that cannot be parsed permits
    nothing.
    """

    id: str
    type: str = "collaborator"
    permissions: tuple[str, ...] = ("memory:*", "tools:*")


OWNER = Identity(id="owner", type="owner")
"""The identity of a caller that presents the token of the home."""


class Authenticator(Protocol):
    """Maps a request's credentials to an identity."""

    name: str

    async def __call__(self, headers: Mapping[str, str]) -> Identity | None:
        """Return the identity, or None if the credentials are not of this authenticator's kind. Header names are
        lower case.

        An exception refuses the request: guards fail closed.
        """
        ...


class AdmissionRule(Protocol):
    """Decides whether a message is accepted: rate limits, quotas, allow lists."""

    name: str

    async def __call__(self, message: SendMessage, identity: Identity) -> None:
        """Return to accept the message. Raise Refusal to refuse it; any other exception refuses the message too."""
        ...


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """A route below ``/x/<plugin>/``, which requires authentication unless ``public``. ``endpoint`` is a Starlette
    endpoint.
    """

    path: str
    methods: tuple[str, ...]
    endpoint: Callable[[Any], Awaitable[Any]]
    public: bool = False
