"""AuthOperation: a row of the table of the gateway's operations about identities, tokens and permissions.

``acl.roles`` derives from ``callers`` which processes may call an operation. The gateway binds a handler to each row,
and ``AuthClient`` has a method for each.
"""

from dataclasses import dataclass
from typing import Literal, TypeVar

from trunkline_bus import Endpoint, Subject

Req = TypeVar("Req")
Rep = TypeVar("Rep")

AuthCaller = Literal["operator", "tools"]
"""Who may call an operation: the owner at the terminal, or the tools worker for a call that the owner has approved."""


@dataclass(frozen=True)
class AuthOperation(Endpoint[Req, Rep]):
    """An operation about who may enter and what they may do, and its permitted callers."""

    callers: frozenset[AuthCaller] = frozenset()


def auth_operation(
    verb: str,
    request: type[Req],
    reply: type[Rep],
    doc: str,
    *,
    changes: bool = True,
    tools: bool = False,
) -> AuthOperation[Req, Rep]:
    """Return an operation. With ``tools`` the tools worker may call it, too."""
    callers: frozenset[AuthCaller] = frozenset({"operator", "tools"} if tools else {"operator"})
    subject = Subject(f"trunkline.cmd.auth.{verb}")
    return AuthOperation(f"auth.{verb}", subject, request, reply, doc=doc, root=changes, callers=callers)
