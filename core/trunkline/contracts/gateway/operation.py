"""GatewayOperation: one row of the table of the gateway's operations. The table is in ``subjects``.

``acl.roles`` derives the NATS permissions of each process from ``callers``. The gateway binds a handler to each row
(``workers.gateway.bus_handlers``), and ``GatewayClient`` has a method for each.
"""

from dataclasses import dataclass
from typing import Literal, TypeVar

from trunkline.contracts.auth.scopes import TokenScope
from trunkline_bus import Endpoint, Subject

Req = TypeVar("Req")
Rep = TypeVar("Rep")

Callers = Literal["channels", "operator"]
"""Who may call an operation: every channel and the operator, or the operator alone."""


@dataclass(frozen=True)
class GatewayOperation(Endpoint[Req, Rep]):
    """An operation of the gateway: its subject, its request and reply type, who may call it, and the scope that the
    caller's token needs. The channels and the operator speak for the owner.

    ``{channel}`` in the subject is the caller's name. The credentials of a process permit only its own name there, so
    no process can impersonate another.
    """

    callers: Callers = "channels"
    scope: TokenScope = TokenScope.OWNER


def query(
    verb: str, request: type[Req], reply: type[Rep], doc: str, *, scope: TokenScope = TokenScope.READ
) -> GatewayOperation[Req, Rep]:
    """Return an operation that changes nothing."""
    return GatewayOperation(
        f"gateway.{verb}", _subject(verb), request, reply, doc=doc, root=False, scope=scope
    )


def command(
    verb: str,
    request: type[Req],
    reply: type[Rep],
    doc: str,
    *,
    callers: Callers = "channels",
    scope: TokenScope = TokenScope.OWNER,
) -> GatewayOperation[Req, Rep]:
    """Return an operation that changes state. It starts a trace."""
    return GatewayOperation(
        f"gateway.{verb}", _subject(verb), request, reply, doc=doc, callers=callers, scope=scope
    )


def _subject(verb: str) -> Subject:
    return Subject(f"trunkline.cmd.gateway.{{channel}}.{verb}")
