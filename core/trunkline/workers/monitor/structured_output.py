"""Answers in a response format by adapters whose vendors do not enforce one: instruction, validation, one repair."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing

import anyio.to_thread
from msgspec.structs import replace

from trunkline._util.json_schema import find_schema_violation
from trunkline.contracts.conversations.messages import Message, Usage
from trunkline.contracts.models.adapter import AskModel, Call, Finish, ModelEvent, ModelRequest, Text
from trunkline.contracts.models.constraints import ResponseFormat, ToolChoice
from trunkline.errors import ErrorCode, ModelError

FENCE = "```"
"""The beginning and the end of a block of Markdown, into which a model may put its JSON text."""

MAX_PROBLEM = 300
"""Largest number of characters of the validator's message that the model receives."""


async def ask_in_format(request: ModelRequest, ask: AskModel) -> AsyncIterator[ModelEvent]:
    """Yield the events of an answer whose text is valid in ``request.response_format``.

    The text arrives in one piece, after it was validated. An answer with tool calls, and an answer that was cut off,
    are not validated. If the text is invalid, the model gets the reason and answers once more; usage and cost are
    those of both answers.

    Raises:
        ModelError: as ``ask``; with ``wrong_format`` if the second answer is invalid, too.
    """
    format = request.response_format
    assert format is not None
    asked, usage, problem = _instructed(request, format), Usage(), ""
    cost: int | None = 0
    for _ in range(2):
        text, finish, calls = "", Finish(), False
        async with aclosing(ask(asked)) as events:  # type: ignore[type-var]
            async for event in events:
                match event:
                    case Text(piece):
                        text += piece
                    case Finish():
                        finish = event
                    case _:
                        calls = calls or isinstance(event, Call)
                        yield event
        usage += finish.usage
        cost = None if cost is None or finish.cost is None else cost + finish.cost
        done = replace(finish, usage=usage, cost=cost)
        if calls or finish.reason != "stop":
            yield Text(text)
            yield done
            return
        document = _without_fence(text)
        problem = await anyio.to_thread.run_sync(find_problem, document, format)
        if not problem:
            yield Text(document)
            yield done
            return
        asked = _with_repair(asked, text, problem)
    raise ModelError(ErrorCode.PROVIDER_ERROR, "wrong_format", problem)


def find_problem(text: str, format: ResponseFormat) -> str:
    """Return why the text is not valid in the format, "" if it is valid."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"It is not JSON: {error}"[:MAX_PROBLEM]
    if format.schema is None:
        return "" if isinstance(document, dict) else "It is not a JSON object."
    violation = find_schema_violation(document, format.schema)
    return violation[:MAX_PROBLEM]


def _without_fence(text: str) -> str:
    plain = text.strip()
    first, _, rest = plain.partition("\n")
    if first.rstrip() not in (FENCE, f"{FENCE}json") or not rest.endswith(FENCE):
        return plain
    return rest.removesuffix(FENCE).strip()


def _instructed(request: ModelRequest, format: ResponseFormat) -> ModelRequest:
    """Return the request with the instruction at the end of the system messages, which stay the same between turns."""
    purpose = f" {format.description}" if format.description else ""
    schema = json.dumps(format.schema) if format.schema is not None else ""
    rule = f" that is valid against this JSON Schema:\n{schema}" if schema else "."
    text = f"Answer with a JSON object and nothing else.{purpose} The answer is a JSON object{rule}"
    messages = list(request.messages)
    systems = [number for number, message in enumerate(messages) if message.role == "system"]
    at = systems[-1] + 1 if systems else 0
    messages.insert(at, Message(id="response_format", role="system", content=text))
    return replace(request, messages=tuple(messages), response_format=None)


def _with_repair(request: ModelRequest, text: str, problem: str) -> ModelRequest:
    """Return the request for the corrected answer. It permits no call: a model that calls a tool again after each wrong
    answer would never end its turn.
    """
    said = "Your answer is not valid. Answer again with the corrected JSON object and nothing else."
    messages: list[Message] = [*request.messages]
    if text.strip():
        messages.append(Message(id="response_format_answer", role="assistant", content=text))
    messages.append(Message(id="response_format_repair", role="user", content=f"{said} {problem}"))
    return replace(request, messages=tuple(messages), tool_choice=ToolChoice(mode="none"))
