"""Routed turns at a platform: the tools, the model, the record of the decision and its cost."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

import trunkline
from trunkline.api.model import Finish, ModelAdapter, ModelError, ModelParameter, ModelRequest
from trunkline.api.turn import JOURNAL, TurnRoute, TurnStarted
from trunkline.cli.trace import draw_trace
from trunkline.contracts.costs.subjects import COST
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE
from trunkline.testing.platform import Platform, TurnAnswer, platform
from trunkline.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

PREFERENCES = """
[router]
on = true
[router.blocks.quiet]
on = false
[router.categories.code]
model = "scripted/coder"
[router.categories.research]
tools = ["web_search"]
"""


class Vendor:
    """A model that answers questions about the category with the next of ``categories``, and anything else in words."""

    def __init__(self) -> None:
        self.model = ScriptedModel(self._answer)
        self.model.parameters = (ModelParameter(name="reasoning_effort", type="string", doc="Levels."),)
        self.categories: list[str | Exception] = []

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]

    def _answer(self, request: ModelRequest) -> Any:
        if request.purpose != "route":
            return f"an answer of {request.model or 'the default'}"
        answer = self.categories.pop(0)
        return [answer] if isinstance(answer, Exception) else [answer, Finish(model="scripted-1")]

    def asked(self, purpose: str) -> list[ModelRequest]:
        return [request for request in self.model.requests if request.purpose == purpose]


class Routed:
    """A platform with routing on."""

    def __init__(self, running: Platform, vendor: Vendor) -> None:
        self.running = running
        self.vendor = vendor

    async def say(
        self, text: str, *categories: str | Exception, **fields: Any
    ) -> tuple[TurnAnswer, ModelRequest]:
        """Send a message, where the classifier gives these answers. Return the answer, and the request for it."""
        self.vendor.model.requests.clear()
        self.vendor.categories[:] = categories
        answer = await self.running.say(text, **fields)
        assert not self.vendor.categories
        assert len(self.vendor.asked("route")) == len(categories)
        return answer, self.vendor.asked("turn")[0]

    async def route(self, answer: TurnAnswer) -> TurnRoute | None:
        """Return the route in the journal."""
        conversation = answer.accepted.conversation
        async for stored in self.running.bus.history(JOURNAL, after=0, conversation=conversation):
            for entry in stored.data.entries:
                if isinstance(entry, TurnStarted) and entry.request.turn == answer.accepted.turn:
                    return entry.route or None
        raise AssertionError("the turn is not in the journal")


@pytest.fixture(scope="module")
async def routed() -> AsyncIterator[Routed]:
    vendor = Vendor()
    config = {"runtime.provider_adapter": "scripted", "monitor.discovery_threshold": 1_000}
    async with platform(plugins=[vendor], config=config) as running:
        write = WriteMemory(path="preferences.toml", content=PREFERENCES, actor="owner")
        await running.bus.call(MEMORY_WRITE, write)
        await running.gateway.create_block("quiet")
        yield Routed(running, vendor)


def names(request: ModelRequest) -> set[str]:
    return {tool.name for tool in request.tools}


async def test_a_block_without_routing_has_all_tools(routed: Routed) -> None:
    """Routing is off in the block, so that its turn has no route and no model is asked about it."""
    answer, request = await routed.say("fix src/auth.py", block="quiet")
    assert await routed.route(answer) is None
    assert {"web_search", "write_file"} <= names(request)
    assert request.route is None


async def test_MN_F4_a_category_binds_tools_and_a_model(routed: Routed) -> None:
    """An obvious turn is routed without a question; what was decided is in the journal and in the trace (MN-F7)."""
    answer, request = await routed.say("fix src/auth.py please")
    route = await routed.route(answer)
    assert route is not None and (route.category, route.reason) == ("code", "the message has: path")
    assert {"write_file", "todo_write", "read_file", "memory_read", "load_tools"} <= names(request)
    assert not {"web_search", "search_in_documents"} & names(request)
    assert request.model == "coder" and answer.text == "an answer of coder"
    drawn = await draw_trace(routed.running.bus, answer.accepted.turn)
    assert "route code (the message has: path)" in drawn


async def test_MN_T1_with_a_conversation_a_model_is_always_asked(routed: Routed) -> None:
    """The question is a request of its own purpose without reasoning, and its cost is in the ledger (MN-F12)."""
    first, _ = await routed.say("hello")
    _, request = await routed.say(
        "read https://example.com", "research", conversation=first.accepted.conversation
    )
    (question,) = routed.vendor.asked("route")
    assert question.parameters == {"reasoning_effort": "none"}
    assert names(request) == {"web_search", "discover_tools", "load_tools"}
    entries = [one.data async for one in routed.running.bus.history(COST) if one.data.purpose == "route"]
    assert any(entry.turn == question.turn for entry in entries)


async def test_MN_T2_without_a_category_a_turn_has_all_tools(routed: Routed) -> None:
    """Two answers without a category make the turn ``full``, as do two failures."""
    answer, request = await routed.say("capital of France", "banana", "what?")
    route = await routed.route(answer)
    assert route is not None and (route.category, route.reason) == ("full", "the model named no category")
    assert {"web_search", "write_file"} <= names(request)
    failed = ModelError(trunkline.ErrorCode.INVALID_REQUEST, "refused", "scripted")
    answer, _ = await routed.say("capital of Spain", failed, failed)
    route = await routed.route(answer)
    assert route is not None and route.category == "full" and route.reason.startswith("no model answered: ")


async def test_a_named_model_is_not_replaced(routed: Routed) -> None:
    """The model that a client or a person names has precedence over that of the category."""
    _, request = await routed.say("fix src/auth.py please", model="scripted/mine")
    assert request.model == "mine"


async def test_a_command_is_not_routed(routed: Routed) -> None:
    """``/tool`` has no model's answer to route."""
    routed.vendor.model.requests.clear()
    answer = await routed.running.say("/tool get_current_time")
    assert await routed.route(answer) is None and not routed.vendor.model.requests
