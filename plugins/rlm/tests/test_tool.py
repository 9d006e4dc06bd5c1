"""The tool ``retrieve`` on a whole platform: real memory, a scripted model, the monitor's prices."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest
from rlm_processes import begun_by, none_left

import trunkline
from trunkline._util.untrusted_text import unwrap_tool_result
from trunkline.api.model import Call, Finish, ModelAdapter, ModelRequest, Usage
from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.contracts.turns.feed_messages import ToolEnded, ToolStarted
from trunkline.home.kill_switch import KillSwitch
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ModelScript, ReplyItems, ScriptedModel

pytestmark = pytest.mark.anyio

PRICES = {"scripted": {"input": 2.0, "output": 10.0}}


class Model:
    """A plugin that brings the scripted model."""

    def __init__(self, script: ModelScript) -> None:
        self.model = ScriptedModel(script)

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]


@asynccontextmanager
async def asked(*codes: ReplyItems, **config: Any) -> AsyncIterator[tuple[Platform, Model]]:
    """A platform whose model calls ``retrieve`` in each turn, and writes these pieces of code when it is asked for."""
    waiting = iter(codes)

    def script(request: ModelRequest) -> ReplyItems:
        if request.purpose == "repl":
            return next(waiting)
        last = request.messages[-1]
        if last.role == "tool":
            return last.content
        call = trunkline.ToolCall(id="1", name="retrieve", arguments={"query": "Where is the key?"})
        return [Call(call)]

    plugin = Model(script)
    settings = {"runtime.provider_adapter": "scripted", "models.prices": PRICES, **config}
    async with platform(plugins=[plugin], config=settings) as running:
        yield running, plugin


def code(text: str) -> str:
    return f"```python\n{text}\n```"


async def test_an_agent_retrieves_from_real_chunks() -> None:
    """Remembered chunks are found by the code of a model; the result says from which, by what steps, at which cost."""
    usage = Usage(input_tokens=1_000, output_tokens=7)
    reply = code("hit = search_chunks('key shed')[0]\nFINAL(read_chunk(hit['id'])['content'])")
    async with asked([reply, Finish(usage=usage, model="m")]) as (running, plugin):
        memory = block_memory(running.bus, "main", "owner")
        kept = await memory.remember("Anna keeps the key in the shed.", tags=["house"], conversation="conv_1")
        answer = await running.say("go")
        result = msgspec.json.decode(unwrap_tool_result(answer.text))
        assert "key in the shed" in result["answer"]
        assert result["source_chunks"] == list(kept.chunk_ids)
        assert result["traversal_path"][0].startswith("search_chunks")
        assert (result["iterations_used"], result["model_calls"]) == (1, 1)
        assert result["cost_usd"] == (1_000 * 2 + 7 * 10) / 1_000_000
        assert result["cost_by_model"] == {"scripted/m": result["cost_usd"]}
        (request,) = (request for request in plugin.model.requests if request.purpose == "repl")
        assert request.turn == answer.accepted.turn and request.tools == ()
        assert any(isinstance(event, ToolStarted | ToolEnded) for event in answer.events)


async def test_a_budget_of_the_owner_ends_a_retrieval() -> None:
    """``max_cost_usd`` is checked before each call: the second one is not made."""
    usage = Usage(input_tokens=100_000)
    reply = [code("llm_query('more')"), Finish(usage=usage, model="m")]
    async with asked(reply, reply, **{"plugins.rlm.max_cost_usd": 0.1}) as (running, plugin):
        result = msgspec.json.decode(unwrap_tool_result((await running.say("go")).text))
        assert result["answer"] is None and "used up" in result["ended"]
        assert sum(request.purpose == "repl" for request in plugin.model.requests) == 1


async def test_without_a_model_the_error_names_the_alternatives() -> None:
    """No code is expected of the adapter that answers offline."""
    async with platform(config={"runtime.provider_adapter": "offline"}) as running:
        answer = await running.say('/tool retrieve query="Where is the key?"')
        assert "No model is configured" in answer.text and "memory_search" in answer.text


async def test_without_a_sandbox_the_tool_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is told what a person must install, and no code runs."""
    monkeypatch.setenv("PATH", "/nowhere")
    async with asked(code("FINAL(1)"), **{"plugins.sandbox.backend": "bubblewrap"}) as (running, _):
        answer = await running.say("go")
        assert "apt install bubblewrap" in answer.text
        assert begun_by() == []


async def test_panic_ends_code_and_starts_none() -> None:
    """The program of a session is one of those that panic knows, by the home it belongs to."""
    async with asked(code("while True: pass"), code("FINAL(1)"), code("FINAL(2)")) as (running, _):
        accepted = await running.send("go")
        with anyio.fail_after(60):
            while not begun_by():  # noqa: ASYNC110
                await anyio.sleep(0.05)
        began = begun_by()
        KillSwitch(running.home.path).engage("the owner")
        await none_left(began)
        await running.answer(accepted)
        assert begun_by() == []


async def test_a_cancelled_turn_ends_code_and_model() -> None:
    """A cancel leaves no process and no call."""
    async with asked(code("while True: pass")) as (running, _):
        accepted = await running.send("go")
        with anyio.fail_after(60):
            while not begun_by():  # noqa: ASYNC110
                await anyio.sleep(0.05)
            await running.gateway.cancel(accepted.turn, mode="now")
            await running.answer(accepted)
            while begun_by():  # noqa: ASYNC110
                await anyio.sleep(0.05)
