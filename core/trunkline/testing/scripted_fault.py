"""Faults of a scripted service, and its address while it runs: shared by the services of channels' tests.

::

    faults: ScriptedFaults[str] = ScriptedFaults()
    faults.append(ScriptedFault("send", lost=True))    # the next "send" gets no answer
    faults.append(ScriptedFault("send", before=process.kill))
"""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

if TYPE_CHECKING:
    from starlette.types import ASGIApp

A = TypeVar("A")
"""The answer of a service in place of a call's effect."""


@dataclass(eq=False)
class ScriptedFault(Generic[A]):
    """A fault of the next call of this name. ``before`` and ``after`` are called around the call's effect; ``answer``
    replaces the effect; ``lost`` closes the connection after the effect and without an answer.
    """

    name: str
    answer: A | None = None
    before: Callable[[], None] | None = None
    after: Callable[[], None] | None = None
    lost: bool = False

    @property
    def early(self) -> bool:
        """Report whether it happens before the effect."""
        return self.before is not None or self.answer is not None


class ScriptedFaults(list[ScriptedFault[A]]):
    """The faults that are still to happen. Each is used up by one call."""

    def begin(self, name: str) -> A | None:
        """Let the next fault before the effect of a call happen; return the answer in place of the effect, or None."""
        fault = self._take(name, early=True)
        if fault is None:
            return None
        if fault.before is not None:
            fault.before()
        return fault.answer

    def end(self, name: str) -> bool:
        """Let the next fault after the effect of a call happen; return whether the answer is lost."""
        fault = self._take(name, early=False)
        if fault is None:
            return False
        if fault.after is not None:
            fault.after()
        return fault.lost

    def _take(self, name: str, *, early: bool) -> ScriptedFault[A] | None:
        for fault in self:
            if fault.name == name and fault.early == early:
                self.remove(fault)
                return fault
        return None


@asynccontextmanager
async def scripted_address(app: "ASGIApp") -> AsyncIterator[str]:
    """Serve an ASGI application on a free port of this machine within the context; yield its address, such as
    ``http://127.0.0.1:40123``.
    """
    from trunkline.runtime.http.server import serve_app

    # It names the protocol: without, asyncio does not set TCP_NODELAY, and each answer takes 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_app, app, listening)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
            tasks.cancel_scope.cancel()
