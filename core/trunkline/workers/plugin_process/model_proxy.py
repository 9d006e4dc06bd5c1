"""The model of a tool that runs apart: the tools worker asks, as if the tool ran there."""

import msgspec

from trunkline.contracts.models.client import CompleterBase
from trunkline.contracts.models.messages import Complete, Completion
from trunkline.contracts.plugins.messages import ModelHostCall
from trunkline.errors import CompletionError
from trunkline.workers.plugin_process.host_calls import HostCallClient


class ProxyCompleter(CompleterBase):
    """``Completer`` by ``wishes``."""

    def __init__(self, wishes: HostCallClient) -> None:
        self._wishes = wishes

    async def ask(self, question: Complete) -> Completion:
        """Have it asked."""
        answer = await self._wishes.call(lambda number: ModelHostCall(number=number, question=question))
        if answer.error is not None:
            raise CompletionError(answer.code, answer.error)
        return msgspec.json.decode(answer.result, type=Completion)
