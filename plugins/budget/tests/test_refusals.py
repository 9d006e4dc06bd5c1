"""What clients of every surface receive when a budget is used up: a code, a status and a sentence of its own."""

import httpx
import openai
import pytest

from tests.support.socket_client import open_socket
from trunkline import ErrorCode
from trunkline.testing.platform import Platform
from trunkline.workers.gateway.socket.event_envelopes import TurnEndedPayload

from .test_limits import cents, limited

pytestmark = pytest.mark.anyio

SENTENCE = "A budget is used up, so no model was asked."


def http_of(running: Platform) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=running.url, headers={"Authorization": f"Bearer {running.token}"}, timeout=60
    )


async def test_every_surface_says_that_a_budget_is_used_up() -> None:
    """HTTP clients read 429 and not 502, OpenAI's clients their own error, which they do not repeat, and streams and
    sockets an event. All say what to do, and the owner reads both numbers."""
    async with limited([cents(10)], max_daily_spend=0.10) as (running, plugin), http_of(running) as http:
        assert (await running.say("one")).ended.code is None
        ended = (await running.say("two")).ended
        assert ended.code is ErrorCode.OVER_BUDGET and SENTENCE in (ended.sentence or "")

        shown = (await http.post("/conversations/messages", json={"content": "three"})).text
        assert '"code":"over_budget"' in shown and SENTENCE in shown and "$0.10 of $0.10" in shown

        chat = {"model": "main", "messages": [{"role": "user", "content": "four"}]}
        for path, body in (
            ("/v1/chat/completions", chat),
            ("/v1/responses", {"model": "main", "input": "five"}),
        ):
            reply = await http.post(path, json=body)
            error = reply.json()["error"]
            assert (reply.status_code, reply.headers["x-should-retry"]) == (429, "false"), path
            assert (error["type"], error["code"]) == ("insufficient_quota", "insufficient_quota"), path
            assert SENTENCE in error["message"] and "$0.10 of $0.10" in error["message"], path

        streamed = (
            await http.post("/v1/responses", json={"model": "main", "input": "x", "stream": True})
        ).text
        assert "response.failed" in streamed and SENTENCE in streamed
        streamed = (await http.post("/v1/chat/completions", json={**chat, "stream": True})).text
        assert '"code":"insufficient_quota"' in streamed and SENTENCE in streamed
        async with open_socket(running.url, running.token) as socket:
            turn = (await socket.done("chat", content="six")).payload.turn
            await socket.done("subscribe", turn=turn)
            last = (await socket.until_end(turn))[-1].payload
            assert isinstance(last, TurnEndedPayload) and last.code is ErrorCode.OVER_BUDGET
            assert SENTENCE in (last.message or "") and "$0.10 of $0.10" in (last.detail or "")
        async with openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token) as client:
            with pytest.raises(openai.RateLimitError, match="no model was asked"):
                await client.chat.completions.create(**chat)  # type: ignore[call-overload]
        assert len(plugin.model.requests) == 1
