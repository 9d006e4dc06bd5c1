"""A third party's plugin in strict typing: everything it needs is typed, by ``import trunkline`` alone.

A wrong use is marked with ``type: ignore`` and its code; strict mypy complains about a mark that is not needed.
"""

from collections.abc import AsyncIterator, Iterable
from typing import assert_type

import msgspec

import trunkline


class Vendor(msgspec.Struct, frozen=True):
    key: trunkline.Secret | None = None


class Parrot(trunkline.ModelAdapter):
    name = "parrot"

    async def stream(self, request: trunkline.ModelRequest) -> AsyncIterator[trunkline.ModelEvent]:
        yield trunkline.Text(request.messages[-1].content)
        yield trunkline.Finish(usage=trunkline.Usage(input_tokens=1))


@trunkline.tool(effect="read")
async def peek(path: trunkline.BlockPath, context: trunkline.ToolContext) -> str:
    """Look into a file."""
    with trunkline.open_beneath(context.workspace) as folder:
        assert_type(folder, trunkline.Folder)
        return folder.read_bytes(path).decode()


@trunkline.hookimpl
def trunkline_models(settings: trunkline.PluginSettings) -> Iterable[trunkline.ModelAdapter]:
    assert_type(settings.section(Vendor), Vendor)
    assert_type(settings.section(trunkline.ToolsSettings), trunkline.ToolsSettings)
    yield Parrot()


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    assert_type(peek, trunkline.FunctionTool)
    assert_type(peek.spec, trunkline.ToolSpec)
    return [peek]


class Doorbell(trunkline.Channel):
    name = "doorbell"

    async def run(self, gateway: trunkline.Gateway) -> None:
        accepted = await gateway.send(trunkline.SendMessage(content="ding"))
        async for event in gateway.watch(accepted.conversation, accepted.turn):
            assert_type(event, trunkline.FeedEvent)
            match event:
                case trunkline.TextDelta(text=text):
                    assert_type(text, str)
                case trunkline.TurnEnded(message_id=message_id):
                    assert_type(message_id, str | None)


class NightRest:
    stage: trunkline.Stage = "policy"

    async def __call__(
        self, invocation: trunkline.ToolInvocation, proceed: trunkline.Proceed
    ) -> trunkline.ToolOutcome:
        return await proceed(invocation)


class NoStage:
    async def __call__(
        self, invocation: trunkline.ToolInvocation, proceed: trunkline.Proceed
    ) -> trunkline.ToolOutcome:
        return await proceed(invocation)


good: trunkline.ToolMiddleware = NightRest()
bad: trunkline.ToolMiddleware = NoStage()  # type: ignore[assignment]


@trunkline.tool(effect="delete")  # type: ignore[arg-type]
def wrong_effect() -> None:
    """Misspelt."""


@trunkline.tool()  # type: ignore[call-arg]
def no_effect() -> None:
    """Forgotten."""


trunkline.Toll  # type: ignore[attr-defined]  # noqa: B018
