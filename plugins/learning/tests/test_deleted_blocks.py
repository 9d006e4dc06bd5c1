"""A block is deleted while the learner waits for a model's answer about a turn of it: the result arrives too late."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.models.adapter import ModelRequest
from trunkline.testing.scripted_model import ReplyItems, ScriptedModel
from trunkline_learning import prompts

from .learning_platform import ON, learning, passed_over, texts, until

pytestmark = pytest.mark.anyio

FOUND = {"facts": [{"text": "The person keeps bees.", "type": "fact", "role": "user"}]}

AWAY: dict[str, Callable[[GatewayClient], Awaitable[object]]] = {
    "archive": lambda gateway: gateway.archive_block("garden"),
    "delete": lambda gateway: gateway.delete_block("garden"),
}


class Ponderer(ScriptedModel):
    """Answers people at once, and the learner's question about facts when it is let."""

    def __init__(self) -> None:
        self.asked, self.let = anyio.Event(), anyio.Event()
        super().__init__(self._answer)

    def _answer(self, request: ModelRequest) -> ReplyItems:
        if not request.messages[-1].content.startswith(prompts.FACTS[:40]):
            return "{}"
        self.asked.set()
        return [self.let.wait, json.dumps(FOUND)]


@pytest.mark.parametrize("how", AWAY)
async def test_nothing_is_learned_into_a_block_deleted_meanwhile(tmp_path: Path, how: str) -> None:
    """No folder is created again, so an archive is restored unchanged; and nothing of the turn is stored elsewhere."""
    model = Ponderer()
    async with learning(tmp_path / "home", ON, model) as running:
        await running.gateway.create_block("garden")
        await running.say("My bees had a good summer, all of them", block="garden")
        with anyio.fail_after(60):
            await model.asked.wait()
        await AWAY[how](running.gateway)
        model.let.set()
        await until(lambda: passed_over(running, 1))
        assert not (running.home.memory / "blocks" / "garden").exists()
        assert texts(running, "models/*/episodes/*/*.json") == []
        if how == "archive":
            assert (await running.gateway.restore_block("garden")).conversations == 1
        else:
            await running.gateway.create_block("garden")
        assert not list((running.home.memory / "blocks" / "garden").glob("**/chunks/**/*"))
