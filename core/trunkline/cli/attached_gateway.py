"""Calls the gateway of the running instance, or of one that is started for the duration of the call. Contains no
command.
"""

from typing import TYPE_CHECKING, TypeVar

from trunkline.cli.attached_workers import with_workers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trunkline.contracts.gateway.client import GatewayClient
    from trunkline.contracts.workers.messages import WorkerKind

T = TypeVar("T")

CHANNEL = "cli"


def with_gateway(
    ask: "Callable[[GatewayClient], Awaitable[T]]",
    kinds: "tuple[WorkerKind, ...]" = ("gateway", "memory"),
    *,
    log: str = "",
) -> "T":
    """Return the result of ``ask``, called with a gateway client. ``kinds`` and ``log`` are as with ``with_workers``.
    Raises the errors of ``GatewayClient``."""
    from trunkline.contracts.gateway.client import GatewayClient

    return with_workers(lambda bus: ask(GatewayClient(bus, CHANNEL)), *kinds, log=log)
