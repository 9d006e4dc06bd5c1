"""Elicitation: a server asks a person in the middle of a call. Only a person can answer."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mcp.client.session import ClientRequestContext
    from mcp_types import ElicitRequestParams, ElicitResult, ErrorData

log = logging.getLogger(__name__)


class FormAnswerer(Protocol):
    """A person who can be asked."""

    async def __call__(self, server: str, question: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answers by the names of the schema, those that were left out left out; None when there is none."""
        ...


async def decline_all(server: str, question: str, schema: Mapping[str, Any]) -> None:
    """No person can be asked from here, so every question is declined."""
    log.info("the MCP server %s asked a person a question that nobody can answer", server)


class ElicitationHandler:
    """Answers a server's questions with a person's words. Declines what nobody answers, and visits to a web page."""

    def __init__(self, server: str, person: FormAnswerer = decline_all) -> None:
        self._server = server
        self._person = person

    async def __call__(
        self, context: "ClientRequestContext", params: "ElicitRequestParams"
    ) -> "ElicitResult | ErrorData":
        """The SDK's callback."""
        from mcp_types import ElicitRequestFormParams, ElicitResult

        if not isinstance(params, ElicitRequestFormParams):
            return ElicitResult(action="decline")
        answers = await self._person(self._server, params.message, params.requested_schema)
        if answers is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=with_defaults(params.requested_schema, answers))


def with_defaults(schema: Mapping[str, Any], answers: Mapping[str, Any]) -> dict[str, Any]:
    """The answers, with the schema's defaults for what was left out (SEP-1034)."""
    parts = schema.get("properties", {})
    defaults = {name: part["default"] for name, part in parts.items() if "default" in part}
    return {**defaults, **answers}
