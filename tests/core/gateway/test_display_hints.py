"""What a client says about the form in which a person sees the answer (MB-F8)."""

import pytest

from tests.support.socket_client import open_socket
from trunkline.contracts.gateway.messages import MAX_SHOWS
from trunkline.contracts.turns.messages import TurnRequested

from .conftest import Environment
from .test_request_validation import refused

pytestmark = pytest.mark.anyio

BRAILLE = "A braille display: plain text in short lines."


async def test_MB_F8_a_client_of_http_says_how_it_shows_answers(env: Environment) -> None:
    """The turn has the channel and the client's words; a client that says nothing sets nothing."""
    for body in ({"content": "one", "shows": BRAILLE}, {"content": "two"}):
        response = await env.http.post("/conversations/messages", json=body)
        assert response.status_code == 200, response.text
    first, second = (one for one in env.monitor.seen if isinstance(one, TurnRequested))
    assert (first.channel, first.shows) == ("http", BRAILLE) and not second.shows


async def test_MB_F8_a_client_of_the_socket_says_how_it_shows_answers(env: Environment) -> None:
    """In the envelope of a message."""
    async with open_socket(env.url, env.token) as client:
        sent = (await client.done("chat", content="hello", block="main", shows=BRAILLE)).payload
        await client.done("subscribe", turn=sent.turn)
        await client.until_end(sent.turn)
    asked = env.monitor.seen[-1]
    assert isinstance(asked, TurnRequested) and asked.shows == BRAILLE


async def test_a_description_that_is_too_long_is_refused(env: Environment) -> None:
    """The model receives it with every message, so its length is bounded; the field is named."""
    response = await env.http.post(
        "/conversations/messages", json={"content": "x", "shows": "x" * (MAX_SHOWS + 1)}
    )
    assert refused(response)["field"] == "/shows"
    assert env.monitor.seen == []
