"""The model of a tool that runs apart: the tools worker asks, as if the tool ran there."""

from collections.abc import Sequence

import msgspec

from trunkline.errors import CompletionError
from trunkline.isolated.wishes import Wishes
from trunkline.messages.completion import Complete, Completion
from trunkline.messages.conversation import Message
from trunkline.messages.isolated import ModelWish
from trunkline.runtime.completion_client import checked, messages_of


class DistantModel:
    """``Completer`` by ``wishes``."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    async def complete(
        self,
        prompt: str | Sequence[Message],
        *,
        purpose: str = "tool",
        model: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        max_cost: int | None = None,
        timeout: float | None = None,
    ) -> Completion:
        """The answer to a text or to messages; see ``Completer``."""
        question = checked(
            Complete(
                messages=messages_of(prompt),
                purpose=purpose,
                model=model,
                max_tokens=max_tokens,
                temperature=temperature,
                max_cost=max_cost,
                timeout=timeout,
            )
        )
        answer = await self._wishes.ask(lambda number: ModelWish(number=number, question=question))
        if answer.error is not None:
            raise CompletionError(answer.code, answer.error)
        return msgspec.json.decode(answer.result, type=Completion)
