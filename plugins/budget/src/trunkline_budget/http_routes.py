"""``/x/trunkline-budget``: the state of the budgets and their reset over HTTP. The routes have the scope of the owner,
so the gateway lets no smaller token in."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from trunkline import ConfigError, ErrorCode, LifespanContext
from trunkline.api.bus import Bus, Refusal
from trunkline.api.gateway import HttpRoute
from trunkline_budget.health import described_limits
from trunkline_budget.limit_editor import current_limits, listed_limits, set_limit
from trunkline_budget.limits import BrokenLimits
from trunkline_budget.settings import BudgetSettings
from trunkline_budget.state import budget_states, reset_budgets

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

OWNER = "owner"


class ResetBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a reset: the block whose budgets begin anew, "" for those of all blocks together."""

    block: str = ""


class SetLimit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a change: the key of a limit as in ``[plugins.budget]``, and its value."""

    key: str
    value: float | None = None


class BudgetRoutes:
    """Answers requests while the gateway runs."""

    def __init__(self, settings: BudgetSettings) -> None:
        self._settings = settings
        self._context: LifespanContext | None = None

    @asynccontextmanager
    async def lifespan(self, context: LifespanContext) -> AsyncIterator[None]:
        """Use the gateway's connection while it is open."""
        self._context = context
        try:
            yield
        finally:
            self._context = None

    def routes(self) -> Iterable[HttpRoute]:
        """Return the routes."""
        return [
            HttpRoute("/budgets", ("GET",), self.show),
            HttpRoute("/reset", ("POST",), self.reset),
            HttpRoute("/limits", ("GET",), self.show_limits),
            HttpRoute("/limits", ("POST",), self.set_limit),
        ]

    async def show(self, request: "Request") -> "Response":
        """``GET /x/trunkline-budget/budgets``: each budget with what is used of it, and all limits as words."""
        limits = await self._limits()
        states = await budget_states(self._connection(), limits)
        return _json({"budgets": states, "limits": described_limits(limits)})

    async def reset(self, request: "Request") -> "Response":
        """``POST /x/trunkline-budget/reset`` with ``{"block": NAME}``, or without a body for the budgets of all blocks
        together. 404 if there is nothing to reset.
        """
        try:
            wanted = msgspec.json.decode(await request.body() or b"{}", type=ResetBudget)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Refusal(ErrorCode.INVALID_REQUEST, "The body is no reset of a budget.") from error
        events = await reset_budgets(self._connection(), await self._limits(), wanted.block, OWNER)
        if not events:
            raise Refusal(ErrorCode.NOT_FOUND, "There is no such budget, or nothing of it is used.")
        return _json({"events": events})

    async def show_limits(self, request: "Request") -> "Response":
        """``GET /x/trunkline-budget/limits``: each limit by its key, with its value now and in ``trunkline.toml``."""
        return _json({"limits": listed_limits(self._settings, await self._limits())})

    async def set_limit(self, request: "Request") -> "Response":
        """``POST /x/trunkline-budget/limits`` with ``{"key": KEY, "value": NUMBER}`` sets a limit for the next calls;
        without a value that of ``trunkline.toml`` counts again.
        """
        try:
            wanted = msgspec.json.decode(await request.body(), type=SetLimit)
            changes = await set_limit(self._connection(), wanted.key, wanted.value)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Refusal(ErrorCode.INVALID_REQUEST, "The body is no limit.") from error
        except BrokenLimits as error:
            raise Refusal(ErrorCode.CONFLICT, f"{error} {error.hint}") from error
        except ConfigError as error:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"{error} {error.hint}") from error
        return _json({"limits": listed_limits(self._settings, changes.applied_to(self._settings))})

    async def _limits(self) -> BudgetSettings:
        try:
            return await current_limits(self._connection(), self._settings)
        except BrokenLimits as error:
            raise Refusal(ErrorCode.CONFLICT, f"{error} {error.hint}") from error

    def _connection(self) -> Bus:
        if self._context is None:
            raise Refusal(ErrorCode.ENGINE_UNAVAILABLE, "The gateway is starting or stopping.")
        return self._context.bus


def _json(body: Any) -> "Response":
    from starlette.responses import Response

    headers = {"cache-control": "no-store"}
    return Response(msgspec.json.encode(body), media_type="application/json", headers=headers)
