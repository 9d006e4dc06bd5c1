"""A long result belongs to its conversation: forks of that have it, after a restart too; no other has."""

import re
from pathlib import Path
from typing import Any

import pytest

import trunkline
from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.gateway.messages import ForkTurn
from trunkline.contracts.models.adapter import Call, ModelAdapter, ModelRequest
from trunkline.contracts.turns.feed_messages import ToolEnded
from trunkline.testing.platform import Platform, TurnAnswer, platform
from trunkline.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

LONG = "much and more\n" * 50_000


class LongResultsPlugin:
    """A tool with a long output, and a model that calls it for "speak", and otherwise reads the named result."""

    def __init__(self) -> None:
        self.model = ScriptedModel(self.answer)
        self.spoke = 0

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ModelAdapter]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="write")
        async def speak() -> str:
            """Say much."""
            self.spoke += 1
            return LONG

        return [speak]

    def answer(self, request: ModelRequest) -> Any:
        last = request.messages[-1]
        if last.role == "tool":
            return "done"
        if last.content == "speak":
            return [Call(ToolCall(id="c", name="speak"))]
        return [
            Call(
                ToolCall(id="c", name="read_result", arguments={"id": last.content, "offset": len(LONG) - 14})
            )
        ]

    def running(self, home: Path) -> Any:
        return platform(home, plugins=[self], config={"runtime.provider_adapter": self.model.name})

    def offered(self, request: int = -1) -> list[str]:
        return [tool.name for tool in self.model.requests[request].tools]


def result(answer: TurnAnswer) -> str:
    return next(event.output for event in answer.events if isinstance(event, ToolEnded))


async def forked(running: Platform, answer: TurnAnswer, step: int, says: str) -> TurnAnswer:
    request = ForkTurn(turn=answer.accepted.turn, step=step, content=says)
    return await running.answer(await running.gateway.fork(request))


async def test_a_fork_reads_the_long_results_of_its_origin(tmp_path: Path) -> None:
    """This holds in its first turn, which memory does not have yet, in later ones, in a fork of the fork, and after
    a restart of everything. Another conversation gets the error that there is no such result."""
    plugin = LongResultsPlugin()
    async with plugin.running(tmp_path) as running:
        first = await running.say("speak")
        found = re.search(r'id="(\w+)"', result(first))
        assert found is not None
        id, conversation = found[1], first.accepted.conversation
        assert result(await running.say(id, conversation=conversation)) == "much and more\n"
        fork = await forked(running, first, 1, id)
        assert result(fork) == "much and more\n" and plugin.offered()[-1] == "read_result"
        assert result(await forked(running, fork, 1, id)) == "much and more\n"
        other = await running.say(id)
        assert result(other).startswith("There is no result") and "read_result" not in plugin.offered(-2)
    async with plugin.running(tmp_path) as running:
        later = await running.say(id, conversation=fork.accepted.conversation)
        assert result(later) == "much and more\n" and plugin.offered()[-1] == "read_result"
        assert result(await running.say(id, conversation=conversation)) == "much and more\n"
    assert plugin.spoke == 1
