"""Calls to the memory worker for one block and one actor. Errors become ToolErrors with a text for the model."""

from typing import TypeVar

from trunkline.abc.memory import NOWHERE
from trunkline.errors import ToolError
from trunkline_bus import Bus, BusError, CallTimeout, Endpoint, NoResponders, RemoteFault, Scope

Q = TypeVar("Q")
A = TypeVar("A")

CALL_SECONDS = 30.0


class MemoryCalls:
    """``actor`` is whom history names; ``scope`` the conversation and turn it names.

    ``patience`` is how long a call may take, in seconds.
    """

    def __init__(
        self,
        bus: Bus,
        block: str,
        actor: str,
        scope: Scope = NOWHERE,
        *,
        patience: float = CALL_SECONDS,
    ) -> None:
        self._bus = bus
        self._block = block
        self._root = f"blocks/{block}"
        self._actor = actor
        self._scope = scope
        self._patience = patience

    async def _call(self, endpoint: Endpoint[Q, A], request: Q, *, timeout: float | None = None) -> A:
        try:
            return await self._ask(endpoint, request, timeout=timeout)
        except RemoteFault as fault:
            raise ToolError(fault.message) from fault

    async def _ask(self, endpoint: Endpoint[Q, A], request: Q, *, timeout: float | None = None) -> A:
        try:
            wait = timeout or self._patience
            return await self._bus.call(endpoint, request, scope=self._scope, timeout=wait)
        except RemoteFault:
            raise
        except NoResponders as error:
            raise ToolError("Memory is not available right now. Nothing was changed; try again.") from error
        except CallTimeout as error:
            raise ToolError(
                "Memory did not answer in time. Whether it did the work is unknown: look."
            ) from error
        except BusError as error:
            raise ToolError("Memory cannot be reached right now.") from error
