"""pydantic-ai on both APIs."""

import asyncio
import base64
from typing import Any, Literal

from cases import BLOCK, KEY, LOOK, PICTURE, REPORT, URL, run
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, NativeOutput, PromptedOutput
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

PROVIDER = OpenAIProvider(base_url=URL, api_key=KEY)
MODELS: dict[str, Model] = {
    "chat": OpenAIChatModel(BLOCK, provider=PROVIDER),
    "responses": OpenAIResponsesModel(BLOCK, provider=PROVIDER),
}


class Report(BaseModel):
    """What the client wants to know."""

    sea: Literal["calm", "rough"]
    waves: int


def weather(town: str) -> str:
    """The weather somewhere."""
    return f"rain in {town}"


def _on_both(ask: Any) -> Any:
    return {name: asyncio.run(ask(model)) for name, model in MODELS.items()}


def answer() -> Any:
    async def ask(model: Model) -> Any:
        result = await Agent(model, instructions="Be kind.").run("say:Hello there.")
        return [result.output, result.usage.output_tokens > 0]

    return _on_both(ask)


def history() -> Any:
    """The second message continues the first one's transcript."""

    async def ask(model: Model) -> Any:
        agent = Agent(model)
        first = await agent.run("say:one")
        second = await agent.run("roles", message_history=first.all_messages())
        return second.output.split()[-3:]

    return _on_both(ask)


def stream() -> Any:
    async def ask(model: Model) -> Any:
        async with Agent(model).run_stream("slow:12:10") as result:
            pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
        return ["".join(pieces).split()[-1], len(pieces) > 3]

    return _on_both(ask)


def tools() -> Any:
    async def ask(model: Model) -> Any:
        return (await Agent(model, tools=[weather]).run(LOOK)).output

    return _on_both(ask)


def tools_in_parallel() -> Any:
    program = 'parallel:weather {"town": "Ulm"} weather {"town": "Bonn"} ;; quote'

    async def ask(model: Model) -> Any:
        return (await Agent(model, tools=[weather]).run(program)).output

    return _on_both(ask)


def picture() -> Any:
    content = BinaryContent(data=base64.b64decode(PICTURE), media_type="image/png")

    async def ask(model: Model) -> Any:
        return "[Attached: image-" in (await Agent(model).run(["say:I see.", content])).output

    return _on_both(ask)


def output_by_call() -> Any:
    async def ask(model: Model) -> Any:
        return (await Agent(model, output_type=Report).run(f"call:final_result {REPORT}")).output.model_dump()

    return _on_both(ask)


def output_by_schema() -> Any:
    async def ask(model: Model) -> Any:
        agent = Agent(model, output_type=NativeOutput(Report))
        return (await agent.run(f"say:{REPORT}")).output.model_dump()

    return _on_both(ask)


def output_by_prompt() -> Any:
    async def ask(model: Model) -> Any:
        agent = Agent(model, output_type=PromptedOutput(Report))
        return (await agent.run(f"say:{REPORT}")).output.model_dump()

    return _on_both(ask)


run(
    picture,
    answer,
    history,
    stream,
    tools,
    tools_in_parallel,
    output_by_call,
    output_by_schema,
    output_by_prompt,
)
