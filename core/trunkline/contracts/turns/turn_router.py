"""Turn routers, which decide once, at the start of a turn, which tools and which model it uses."""

from typing import Protocol

from trunkline.contracts.models.completer import Completer
from trunkline.contracts.turns.context import TurnInfo
from trunkline.contracts.turns.turn_route import TurnRoute


class TurnRouter(Protocol):
    """Decides about a turn that has not started.

    A router with the attribute ``files`` receives those files of memory in ``TurnInfo.files``, as a context source
    does.

    Guarantees: a decision is recorded in the journal before the turn's first model call, and holds until the turn ends,
    whoever runs it. No router is asked about a person's command, such as ``/tool``.

    Not guaranteed: that a router is asked once. If the monitor dies before it has recorded the decision, the next one
    asks again. A cancel of the turn waits for the decision.
    """

    name: str

    async def __call__(self, turn: TurnInfo, completer: Completer) -> TurnRoute | None:
        """Return the decision, None for none. The first router that returns one decides. ``completer`` asks models for
        this turn, with its cost in the ledger; the purpose must be ``route``.

        Raises:
            Exception: the turn runs without a decision of this router. The log has the exception.
        """
        ...
