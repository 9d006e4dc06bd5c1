"""The model of a tool that runs apart: the tools worker asks, as if the tool ran there."""

import msgspec

from trunkline.errors import CompletionError
from trunkline.isolated.wishes import Wishes
from trunkline.messages.completion import Complete, Completion
from trunkline.messages.isolated import ModelWish
from trunkline.runtime.completion_client import Questioner


class DistantModel(Questioner):
    """``Completer`` by ``wishes``."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    async def ask(self, question: Complete) -> Completion:
        """Have it asked."""
        answer = await self._wishes.ask(lambda number: ModelWish(number=number, question=question))
        if answer.error is not None:
            raise CompletionError(answer.code, answer.error)
        return msgspec.json.decode(answer.result, type=Completion)
