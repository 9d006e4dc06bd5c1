"""A third party's plugin in strict typing: everything it needs is typed, by ``import trunkline`` alone.

A wrong use is marked with ``type: ignore`` and its code; strict mypy complains about a mark that is not needed.
"""

from collections.abc import AsyncIterator, Iterable
from typing import assert_type

import msgspec

import trunkline
from trunkline.api.channel import Channel, Gateway
from trunkline.api.gateway import SendMessage
from trunkline.api.hooks import ToolsSettings
from trunkline.api.model import Finish, ModelAdapter, ModelEvent, ModelRequest, Text, Usage
from trunkline.api.paths import open_beneath
from trunkline.api.tool import FunctionTool, Proceed, Stage, ToolInvocation, ToolMiddleware, ToolSpec
from trunkline.api.turn import FeedEvent, TextDelta, TurnEnded


class Vendor(msgspec.Struct, frozen=True):
    key: trunkline.Secret | None = None


class Parrot(ModelAdapter):
    name = "parrot"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield Text(request.messages[-1].content)
        yield Finish(usage=Usage(input_tokens=1))


@trunkline.tool(effect="read")
async def peek(path: trunkline.BlockPath, context: trunkline.ToolContext) -> str:
    """Look into a file."""
    with open_beneath(context.workspace) as folder:
        assert_type(folder, trunkline.Folder)
        return folder.read_bytes(path).decode()


@trunkline.hookimpl
def trunkline_models(settings: trunkline.PluginSettings) -> Iterable[ModelAdapter]:
    assert_type(settings.section(Vendor), Vendor)
    assert_type(settings.section(ToolsSettings), ToolsSettings)
    yield Parrot()


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    assert_type(peek, FunctionTool)
    assert_type(peek.spec, ToolSpec)
    return [peek]


class Doorbell(Channel):
    name = "doorbell"

    async def run(self, gateway: Gateway) -> None:
        accepted = await gateway.send(SendMessage(content="ding"))
        async for event in gateway.watch(accepted.conversation, accepted.turn):
            assert_type(event, FeedEvent)
            match event:
                case TextDelta(text=text):
                    assert_type(text, str)
                case TurnEnded(message_id=message_id):
                    assert_type(message_id, str | None)


class NightRest:
    stage: Stage = "policy"

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> trunkline.ToolOutcome:
        return await proceed(invocation)


class NoStage:
    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> trunkline.ToolOutcome:
        return await proceed(invocation)


good: ToolMiddleware = NightRest()
bad: ToolMiddleware = NoStage()  # type: ignore[assignment]


@trunkline.tool(effect="delete")  # type: ignore[arg-type]
def wrong_effect() -> None:
    """Misspelt."""


@trunkline.tool()  # type: ignore[call-arg]
def no_effect() -> None:
    """Forgotten."""


trunkline.Toll  # type: ignore[attr-defined]  # noqa: B018
