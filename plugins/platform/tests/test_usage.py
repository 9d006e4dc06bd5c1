"""What the agent's block used, as the cost ledger has it."""

import json
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

import trunkline
from trunkline.contracts.turns.feed_messages import ToolEnded
from trunkline.errors import ToolError
from trunkline.testing.contexts import tool_context
from trunkline.testing.platform import platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_platform.usage_tool import get_token_usage

pytestmark = pytest.mark.anyio


class Models:
    """A plugin with a model that counts its tokens."""

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ScriptedModel]:
        return [ScriptedModel()]


async def test_MB_F18_the_tokens_of_a_block_are_reported_to_the_owner(tmp_path: Path) -> None:
    """The sums are those of the gateway's cost report, by conversation and by block."""
    began = datetime.now(UTC)
    async with platform(
        tmp_path, config={"runtime.provider_adapter": "scripted"}, plugins=[Models()]
    ) as running:
        first = await running.say("say:one two three")
        await running.say("say:elsewhere")
        expected = (await running.gateway.costs(began, block="main")).total
        assert expected.requests == 2 and expected.usage.output_tokens
        with anyio.fail_after(60):
            while True:  # memory copies the ledger's entries some seconds later
                answer = await running.say("/tool get_token_usage", conversation=first.accepted.conversation)
                (ended,) = [event for event in answer.events if isinstance(event, ToolEnded)]
                found = json.loads(ended.output)
                if found["block"]["requests"] == 2:
                    break
                await anyio.sleep(0.2)
    assert found["conversation"]["requests"] == 1
    assert found["block"]["input_tokens"] == expected.usage.input_tokens
    assert found["block"]["output_tokens"] == expected.usage.output_tokens
    assert found["block"]["requests_without_price"] == 2 and found["block"]["dollars"] == 0


async def test_the_costs_are_shown_to_the_owner_alone(tmp_path: Path) -> None:
    """A context without the owner is refused."""
    with pytest.raises(ToolError, match="Only the owner"):
        await get_token_usage(tool_context(tmp_path), {})
