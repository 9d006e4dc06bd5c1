"""Answers that must call a tool (``tool_choice: required``), by models that answered without one: one repetition."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import Message, Usage
from trunkline.contracts.models.adapter import AskModel, Call, Finish, ModelEvent, ModelRequest, Text
from trunkline.errors import ErrorCode, ModelError

INSTRUCTION = "Your answer calls no tool. Answer again with a call of one of these tools: {tools}."

PROBLEM = "the answer calls no tool, although the request requires a call, also after one repetition"


async def ask_for_call(request: ModelRequest, ask: AskModel) -> AsyncIterator[ModelEvent]:
    """Yield the events of an answer that calls a tool. Text before the first call arrives with it.

    An answer that was cut off is yielded as it is. If an answer is complete without a call, the model is told so and
    answers once more; usage and cost are those of both answers. Vendors that enforce the choice are asked once.

    Raises:
        ModelError: as ``ask``; with ``wrong_format`` if the second answer has no call, too.
    """
    asked, usage = request, Usage()
    cost: int | None = 0
    for _ in range(2):
        texts, finish, called = list[Text](), Finish(), False
        async with aclosing(ask(asked)) as events:  # type: ignore[type-var]
            async for event in events:
                match event:
                    case Text() if not called:
                        texts.append(event)
                    case Finish():
                        finish = event
                    case _:
                        if isinstance(event, Call) and not called:
                            called = True
                            for text in texts:
                                yield text
                        yield event
        usage += finish.usage
        cost = None if cost is None or finish.cost is None else cost + finish.cost
        if called or finish.reason != "stop":
            for text in () if called else texts:
                yield text
            yield replace(finish, usage=usage, cost=cost)
            return
        asked = _insisting(asked, "".join(text.text for text in texts))
    raise ModelError(ErrorCode.PROVIDER_ERROR, "wrong_format", PROBLEM)


def _insisting(request: ModelRequest, answer: str) -> ModelRequest:
    """Return the request for the second answer."""
    names = request.tool_choice.tools or tuple(tool.name for tool in request.tools)
    messages = [*request.messages]
    if answer.strip():
        messages.append(Message(id="tool_choice_answer", role="assistant", content=answer))
    content = INSTRUCTION.format(tools=", ".join(names))
    messages.append(Message(id="tool_choice_repetition", role="user", content=content))
    return replace(request, messages=tuple(messages), partial="")
