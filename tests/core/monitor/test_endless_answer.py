"""A model that does not stop: its answer is cut at ``monitor.max_answer``, and the text up to there is kept."""

from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

import trunkline
from tests.shared_model import SharedModel
from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.models.adapter import Call, ModelAdapter, Reasoning, Text
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import Item

pytestmark = pytest.mark.anyio

LIMIT = 2_000


class Brings:
    """A plugin that brings a model."""

    def __init__(self, model: ModelAdapter) -> None:
        self.model = model

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]


def endless(item: Item) -> Iterator[Item]:
    """Yield the same text without end."""
    while True:
        yield item


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[tuple[Platform, SharedModel]]:
    """One platform with the limit, for all tests of the module."""
    model = SharedModel()
    settings = {"runtime.provider_adapter": model.name, "monitor.max_answer": LIMIT}
    async with platform(plugins=[Brings(model)], config=settings) as running:
        yield running, model


@pytest.fixture
def running(shared: tuple[Platform, SharedModel]) -> Platform:
    return shared[0]


@pytest.fixture
def model(shared: tuple[Platform, SharedModel]) -> SharedModel:
    """The model of the shared platform. A test gives it a script."""
    return shared[1]


async def test_endless_text_ends_at_its_limit_and_is_stored(running: Platform, model: SharedModel) -> None:
    """The turn ends with the length limit, the shown text is stored, the provider is not called again, and the
    conversation continues."""
    model.begin([endless(Text("wörd ")), "on"])
    answer = await running.say("begin")
    assert answer.ended.reason == "max_tokens" and model.closed == 1
    assert LIMIT - 4 <= len(answer.text.encode()) <= LIMIT
    view = await running.gateway.conversation(answer.accepted.conversation)
    assert view.messages[-1].content == answer.text
    assert (await running.say("go on", conversation=answer.accepted.conversation)).text == "on"


async def test_endless_reasoning_ends_too(running: Platform, model: SharedModel) -> None:
    """Reasoning counts, though it is no text of the answer."""
    model.begin([endless(Reasoning("hm "))])
    answer = await running.say("begin")
    assert answer.ended.reason == "max_tokens" and answer.text == "" and model.closed == 1


async def test_a_call_too_large_is_not_made(running: Platform, model: SharedModel) -> None:
    """A call for which there is no room left is dropped whole, not shortened to another one."""
    large = Call(ToolCall(id="1", name="write_file", arguments={"path": "a", "content": "x" * LIMIT}))
    model.begin([iter([Text("look"), large])])
    answer = await running.say("begin")
    assert answer.ended.reason == "max_tokens" and answer.text == "look"
    assert not [event for event in answer.events if type(event).__name__ == "ToolStarted"]


async def test_a_limit_that_is_just_reached_cuts_nothing(running: Platform, model: SharedModel) -> None:
    """An answer of exactly so many bytes is whole."""
    model.begin([iter([Text("x" * LIMIT)])])
    answer = await running.say("begin")
    assert answer.ended.reason == "stop" and answer.text == "x" * LIMIT
