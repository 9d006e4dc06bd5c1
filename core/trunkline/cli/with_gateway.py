"""Asks the gateway of the instance that runs, or of one that runs for as long as this takes. No command in here."""

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trunkline.messages.workers import WorkerKind
    from trunkline.runtime.gateway_client import GatewayClient

T = TypeVar("T")

CHANNEL = "cli"


def with_gateway(
    ask: "Callable[[GatewayClient], Awaitable[T]]", kinds: "tuple[WorkerKind, ...]" = ("gateway", "memory")
) -> "T":
    """What ``ask`` gets of it; ``kinds`` are the workers that run for it if none do. Raises as ``GatewayClient``."""
    from trunkline.cli.aio import run

    found: T = run(_asked, ask, kinds)
    return found


async def _asked(ask: "Callable[[GatewayClient], Awaitable[T]]", kinds: "tuple[WorkerKind, ...]") -> "T":
    from trunkline.config import load_config
    from trunkline.runtime.attach import attached
    from trunkline.runtime.gateway_client import GatewayClient
    from trunkline.workers import load_worker

    async with attached(load_config(), load_worker, kinds=kinds) as bus:
        return await ask(GatewayClient(bus, CHANNEL))
