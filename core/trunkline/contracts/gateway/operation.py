"""GatewayOperation: one row of the table of what the gateway can be asked. The table is in ``subjects``.

``acl.roles`` derives the NATS permissions of each process from ``callers``. The gateway binds a handler to each row
(``workers.gateway.bus_handlers``), and ``GatewayClient`` has a method for each.
"""

from dataclasses import dataclass
from typing import Literal, TypeVar

from trunkline_bus import Endpoint, Subject

Req = TypeVar("Req")
Rep = TypeVar("Rep")

Callers = Literal["channels", "operator"]
"""Who may call an operation: every channel and the operator, or the operator alone."""


@dataclass(frozen=True)
class GatewayOperation(Endpoint[Req, Rep]):
    """An operation of the gateway: its subject, its request and reply type, and who may call it.

    ``{channel}`` in the subject is the caller: a worker's credentials allow its own name there, so nobody can speak for
    another.
    """

    callers: Callers = "channels"


def query(verb: str, request: type[Req], reply: type[Rep], doc: str) -> GatewayOperation[Req, Rep]:
    """An operation that changes nothing."""
    return GatewayOperation(f"gateway.{verb}", _subject(verb), request, reply, doc=doc, root=False)


def command(
    verb: str, request: type[Req], reply: type[Rep], doc: str, *, callers: Callers = "channels"
) -> GatewayOperation[Req, Rep]:
    """An operation that changes something, and begins a trace."""
    return GatewayOperation(f"gateway.{verb}", _subject(verb), request, reply, doc=doc, callers=callers)


def _subject(verb: str) -> Subject:
    return Subject(f"trunkline.cmd.gateway.{{channel}}.{verb}")
