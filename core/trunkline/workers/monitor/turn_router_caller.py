"""Asks the plugins' turn routers about a new turn. The decision is recorded by the turn's first journal entry."""

import logging

import anyio

from trunkline.contracts.models.client import BlockCompleter
from trunkline.contracts.turns.context import TurnInfo
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.turn_route import TurnRoute
from trunkline.plugins import Plugins
from trunkline.workers.monitor.tool_command import COMMAND as TOOL_COMMAND
from trunkline.workers.monitor.tool_command import find_command
from trunkline.workers.monitor.turn_compaction import COMMAND as COMPACT_COMMAND
from trunkline.workers.monitor.turn_compaction import REBIRTH_COMMAND
from trunkline_bus import Bus, BusError

log = logging.getLogger(__name__)

ROUTER_SECONDS = 60.0
"""Seconds that a router may take. Nothing else can end one: the turn has a slot and does not run yet."""

COMMANDS = (TOOL_COMMAND, COMPACT_COMMAND, REBIRTH_COMMAND)
"""The commands that replace the answer of a model."""


class TurnRouterCaller:
    """The turn routers of this monitor."""

    def __init__(self, bus: Bus, plugins: Plugins) -> None:
        self._bus = bus
        self._routers = plugins.turn_routers()

    async def route(self, turn: TurnInfo) -> TurnRoute | None:
        """Return the decision of the first router that makes one. Raises BusError."""
        request = turn.request
        if any(find_command(request, name) is not None for name in COMMANDS):
            return None
        completer = self._completer(request)
        for owned in self._routers:
            decided = None
            try:
                with anyio.fail_after(ROUTER_SECONDS):
                    decided = await owned.item(turn, completer)
            except BusError:
                raise
            except Exception:
                log.exception("the turn router %s failed; turn %s runs without it", owned.owner, request.turn)
                continue
            if decided is not None:
                return decided
        return None

    def _completer(self, request: TurnRequested) -> BlockCompleter:
        return BlockCompleter(
            self._bus,
            request.block,
            actor=request.actor,
            conversation=request.conversation,
            turn=request.turn,
            budget_turn=request.budget_turn,
        )
