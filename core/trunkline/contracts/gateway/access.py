"""Who may come in, what is let in, and further HTTP routes."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from trunkline.contracts.gateway.messages import SendMessage


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a caller. ``type`` is one of a policy's identity types (owner, collaborator, service, ...).

    Only an owner decides about calls, takes permissions back, changes blocks and names conversations. An authenticator
    decides who is an owner.

    ``permissions`` bound what the tool calls of the caller's turns may do, whatever the type: ``tools:read_*``,
    ``memory:/finances/*``, or ``*`` for everything. They only take away. A permission that cannot be read permits
    nothing.
    """

    id: str
    type: str = "collaborator"
    permissions: tuple[str, ...] = ("memory:*", "tools:*")


OWNER = Identity(id="owner", type="owner")
"""Who has the token of the home."""


class Authenticator(Protocol):
    """Turns a request's credentials into an identity."""

    name: str

    async def __call__(self, headers: Mapping[str, str]) -> Identity | None:
        """The identity, or None when these credentials are not this authenticator's. Lower-case header names.

        An exception refuses the request: guards fail closed.
        """
        ...


class AdmissionRule(Protocol):
    """Decides whether a message is let in: rate limits, quotas, allow lists."""

    name: str

    async def __call__(self, message: SendMessage, identity: Identity) -> None:
        """Return to admit. Raise Refusal to refuse; any other exception refuses too."""
        ...


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """A route under ``/x/<plugin>/``, behind authentication unless ``public``. ``endpoint`` is a Starlette endpoint."""

    path: str
    methods: tuple[str, ...]
    endpoint: Callable[[Any], Awaitable[Any]]
    public: bool = False
