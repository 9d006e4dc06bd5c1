"""A block is deleted while the learner waits for a model's answer about a turn of it: the result arrives too late."""

import json
from collections.abc import Awaitable, Callable

import anyio
import pytest

from tests.shared_model import SharedModel
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.models.adapter import ModelRequest
from trunkline.testing.scripted_model import ReplyItems
from trunkline_learning import prompts

from .learning_platform import ON, LearningClient, passed_over, texts, until

pytestmark = pytest.mark.anyio

FOUND = {"facts": [{"text": "The person keeps bees.", "type": "fact", "role": "user"}]}

AWAY: dict[str, Callable[[GatewayClient, str], Awaitable[object]]] = {
    "archive": lambda gateway, block: gateway.archive_block(block),
    "delete": lambda gateway, block: gateway.delete_block(block),
}


class Ponderer:
    """Answers people at once, and the learner's question about facts when it is let."""

    def __init__(self) -> None:
        self.asked, self.let = anyio.Event(), anyio.Event()

    def __call__(self, request: ModelRequest) -> ReplyItems:
        if not request.messages[-1].content.startswith(prompts.FACTS[:40]):
            return "{}"
        self.asked.set()
        return [self.let.wait, json.dumps(FOUND)]


@pytest.mark.parametrize("how", AWAY)
async def test_nothing_is_learned_into_a_block_deleted_meanwhile(
    running: LearningClient, model: SharedModel, how: str
) -> None:
    """No folder is created again, so an archive is restored unchanged; and nothing of the turn is stored elsewhere."""
    ponderer = Ponderer()
    model.begin(ponderer)
    await running.prefer(ON)
    folder = running.home.memory / "blocks" / running.block
    await running.say("My bees had a good summer, all of them")
    with anyio.fail_after(60):
        await ponderer.asked.wait()
    await AWAY[how](running.gateway, running.block)
    ponderer.let.set()
    await until(lambda: passed_over(running, 1))
    assert not folder.exists()
    assert texts(running, "models/*/episodes/*/*.json") == []
    if how == "archive":
        assert (await running.gateway.restore_block(running.block)).conversations == 1
    else:
        await running.gateway.create_block(running.block)
    assert not list(folder.glob("**/chunks/**/*"))
