"""Calls to the memory worker for one block and one actor. Errors become ToolErrors with a text for the model."""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from trunkline.contracts.memory.learned_visibility import Recipient
from trunkline.contracts.memory.paths import is_private_to_another
from trunkline.contracts.memory.store import NOWHERE
from trunkline.errors import ToolError, error_kind_for_code
from trunkline_bus import Bus, BusError, CallTimeout, Endpoint, NoResponders, RemoteFault, Scope

AccessCheck = Callable[[str, Literal["read", "write"], bool], Awaitable[None]]
"""Raises ToolError when a path of memory may not be read or written; with True, when anything below it may not."""

Q = TypeVar("Q")
A = TypeVar("A")

CALL_SECONDS = 30.0


async def _allow_all(path: str, action: Literal["read", "write"], whole: bool) -> None:
    """Permits all."""


class MemoryClientBase:
    """``actor`` is whom history names; ``scope`` the conversation and turn it names.

    ``patience`` is how long a call may take, in seconds. ``permit`` says what may be read and written, ``to`` who is
    told what comes back: None for whoever decides about it again, such as a context source.
    """

    check_access: AccessCheck = staticmethod(_allow_all)
    recipient: Recipient | None = None

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

    async def _visible(self, path: str) -> bool:
        """Report whether a path, from the memory root, may be read."""
        if is_private_to_another(path, self._actor):
            return False
        try:
            await self.check_access(f"/{path}", "read", False)
        except ToolError:
            return False
        return True

    async def _call(self, endpoint: Endpoint[Q, A], request: Q, *, timeout: float | None = None) -> A:
        try:
            return await self._ask(endpoint, request, timeout=timeout)
        except RemoteFault as fault:
            raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault

    async def _ask(self, endpoint: Endpoint[Q, A], request: Q, *, timeout: float | None = None) -> A:
        try:
            wait = timeout or self._patience
            return await self._bus.call(endpoint, request, scope=self._scope, timeout=wait)
        except RemoteFault:
            raise
        except NoResponders as error:
            raise ToolError(
                "Memory is not available right now. Nothing was changed; try again.", kind="unavailable"
            ) from error
        except CallTimeout as error:
            raise ToolError(
                "Memory did not answer in time. Whether it did the work is unknown: look.",
                kind="timeout",
            ) from error
        except BusError as error:
            raise ToolError("Memory cannot be reached right now.", kind="unavailable") from error
