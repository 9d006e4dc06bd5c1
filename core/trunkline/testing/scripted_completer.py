"""A ``context.model`` for tests of tools: a scripted model without a platform, with a price that the test chooses."""

from collections.abc import Sequence

from trunkline.contracts.models.adapter import Finish, ModelRequest, Text
from trunkline.contracts.models.client import CompleterBase
from trunkline.contracts.models.messages import Complete, Completion
from trunkline.contracts.models.prices import Price, Rate
from trunkline.errors import FIXED_SENTENCES, CompletionError, ModelError
from trunkline.testing.scripted_model import ModelScript, ReplyItems, ScriptedModel

FREE = Price(input=0, output=0)


class ScriptedCompleter(CompleterBase):
    """Answers by a script, as ``ScriptedModel`` does. ``questions`` contains the questions.

    ::

        model = ScriptedCompleter(["blue"])
        await my_tool(tool_context(tmp_path, model=model), {"question": "What colour?"})
    """

    def __init__(
        self, script: ModelScript | Sequence[ReplyItems] | None = None, *, price: Price = FREE
    ) -> None:
        self.model = ScriptedModel(script)
        self.questions: list[Complete] = []
        self._rate = Rate.from_price(price)

    async def ask(self, question: Complete) -> Completion:
        """Return the next reply."""
        self.questions.append(question)
        request = ModelRequest(
            messages=question.messages,
            model=question.model or "",
            max_tokens=question.max_tokens,
            temperature=question.temperature,
            purpose=question.purpose,
            adapter=self.model.name,
        )
        text, finish = "", Finish()
        try:
            async for event in self.model.stream(request):
                text += event.text if isinstance(event, Text) else ""
                finish = event if isinstance(event, Finish) else finish
        except ModelError as error:
            raise CompletionError(error.code, FIXED_SENTENCES[error.code]) from error
        return Completion(
            text=text,
            adapter=self.model.name,
            model=finish.model,
            purpose=question.purpose,
            usage=finish.usage,
            cost=self._rate.cost(finish.usage),
            price=self._rate.name,
            finish_reason=finish.reason,
        )
