"""Assigns a server's question to its call, and to the person whom that call may ask.

The protocol does not say which call a question is about. So a person is asked while one call is under way on the
connection, and not while there are several: nobody is to answer in the light of another call than the one it serves.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

import trunkline
from trunkline_mcp.elicitation_form import FormTooLongError, fill_form

log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class _ActiveCall:
    """A call under way. ``scopes`` are of the questions that it waits for, which end with it; they come one by one."""

    context: trunkline.ToolContext
    scopes: set[anyio.CancelScope] = field(default_factory=set)
    turn: anyio.Lock = field(default_factory=anyio.Lock)


class ActiveCalls:
    """The calls under way on one connection."""

    def __init__(self) -> None:
        self._calls: set[_ActiveCall] = set()

    @contextmanager
    def track(self, context: trunkline.ToolContext) -> Iterator[None]:
        """A call is under way; what it has asked and nobody answered ends with it."""
        call = _ActiveCall(context)
        self._calls.add(call)
        try:
            yield
        finally:
            self._calls.discard(call)
            for scope in call.scopes:
                scope.cancel()

    async def ask(self, server: str, question: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """Ask a person to fill in a form, and return the answers; None when nobody answers, or when it is unclear which
        call asks."""
        if len(self._calls) != 1:
            self._decline(
                server, f"{len(self._calls)} calls are under way, and it does not say which one asks"
            )
            return None
        (call,) = self._calls
        with anyio.CancelScope() as scope:
            call.scopes.add(scope)
            try:
                async with call.turn:
                    return await fill_form(call.context.person, server, question, schema)
            except FormTooLongError as error:
                self._decline(server, str(error))
            finally:
                call.scopes.discard(scope)
        return None

    def _decline(self, server: str, why: str) -> None:
        """Say in the log, and to whoever follows the calls, that the platform has declined and not a person."""
        log.warning("the MCP server %s wanted to ask a person, and was declined: %s", server, why)
        for call in self._calls:
            call.context.report(
                f"The MCP server {server} wanted to ask you something. It was declined: {why}."
            )
