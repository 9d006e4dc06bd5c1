"""Calls the gateway about identities and tokens, as the owner. Contains no command."""

from typing import TYPE_CHECKING, TypeVar

from trunkline.cli.attached_workers import with_workers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trunkline.contracts.auth.client import AuthClient

T = TypeVar("T")


def with_auth(ask: "Callable[[AuthClient], Awaitable[T]]") -> "T":
    """Return the result of ``ask``, called with a client of the running gateway, or of one that is started for the
    call. Raises the errors of ``AuthClient``.
    """
    from trunkline.contracts.auth.client import AuthClient

    return with_workers(lambda bus: ask(AuthClient(bus)), "gateway", "memory")
