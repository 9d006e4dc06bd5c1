"""A monitor without turns: it asks a model one question, as ``trunkline init`` does to test it."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import ClassVar

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.models.adapter import Finish, ModelEvent, ModelRequest, Text
from trunkline.contracts.models.price_list import installed_prices
from trunkline.contracts.workers.messages import WorkerHeartbeat, WorkerKind
from trunkline.home.kill_switch import KillSwitch
from trunkline.runtime.cost_ledger import CostLedger
from trunkline.runtime.worker import Worker, WorkerContext
from trunkline.workers.monitor.monitor_models import model_registry
from trunkline_bus import new_id

PURPOSE = "probe"
"""The purpose of the question in the cost ledger."""


class ProbeWorker(Worker):
    """Asks the default model of its configuration, beside a platform that may run with an older configuration.

    The plugins of a monitor are loaded, so budgets and key pools decide about the question, and the ledger records it.
    It counts as draining, so no partition of the inbox is given to it.
    """

    kind: ClassVar[WorkerKind] = "monitor"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        prices = installed_prices(context.config.settings.models.prices)
        self._ledger = CostLedger(context.bus, context.id, prices)
        self._models = model_registry(context, KillSwitch(context.home.path), self._ledger)

    def with_status(self, heartbeat: WorkerHeartbeat) -> WorkerHeartbeat:
        """Mark the worker as one that takes no work."""
        return replace(heartbeat, draining=True)

    async def open(self) -> None:
        """Prepare for a question."""
        self.resources.push_async_callback(self._models.aclose)

    async def serve(self) -> None:
        """Store the entries of the ledger until cancelled."""
        await self._ledger.run()

    async def ask(self, question: str, max_tokens: int) -> tuple[str, Finish]:
        """Send one request, and return the answer and its end. Nothing is repeated, and no other model is asked.

        Raises:
          ModelError: the model did not answer, or a budget is used up.
          BusError: the request could not be admitted or recorded, so it was not sent.
        """
        choice = self._models.choose(None)
        request = ModelRequest(
            messages=(Message(id=new_id("msg"), role="user", content=question),),
            model=choice.model,
            max_tokens=max_tokens,
            purpose=PURPOSE,
            adapter=choice.adapter.name,
        )
        text, finish = "", Finish()
        async with aclosing(self._events(request)) as events:  # type: ignore[type-var]
            async for event in events:
                if isinstance(event, Text):
                    text += event.text
                elif isinstance(event, Finish):
                    finish = event
        return text.strip(), finish

    def _events(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        return self._models.ask_once()(request)
