"""The key of a request, at the wire: each adapter that takes one sends exactly that key."""

from contextlib import AsyncExitStack
from typing import Any

import pytest

from trunkline.api.model import BlockCompleter
from trunkline.cli.checks.check import CheckContext
from trunkline.cli.checks.turn_checks import models_keys
from trunkline.runtime.overview import OverviewReader
from trunkline.testing.platform import platform
from trunkline.testing.script import Refuse, Reply, ScriptedRequest, answer_by_message
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio

HEADERS = {"openai": "authorization", "anthropic": "x-api-key", "gemini": "x-goog-api-key"}


@pytest.mark.parametrize("adapter", HEADERS)
async def test_each_request_carries_the_key_of_its_turn(
    adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of a pool are sent in turn on the same connections, and the adapter's own key is not. A vendor without this
    ability is refused before anything is sent."""
    keys = {"POOL_KEY_1": "sk-pool-1", "POOL_KEY_2": "sk-pool-2", "OWN_KEY": "sk-own"}
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    with ScriptedProvider() as provider:
        pool = {"keys": [{"env": "POOL_KEY_1"}, {"env": "POOL_KEY_2"}]}
        config: dict[str, Any] = {
            "runtime.provider_adapter": adapter,
            f"adapters.{adapter}": {
                "base_url": provider.url if adapter == "openai" else provider.address,
                "model": "scripted",
                "api_key": {"env": "OWN_KEY"},
            },
            "plugins.keys.pools": {adapter: pool, "offline": pool},
        }
        async with platform(config=config) as running:
            complete = BlockCompleter(running.bus, "main").complete
            for number in range(4):
                await complete(f"hello {number}")
            with pytest.raises(Exception, match="model"):
                await complete("hello", model="offline")
        sent = [
            request.headers[HEADERS[adapter]].removeprefix("Bearer ") for request in provider.answer_requests
        ]
    assert sent == ["sk-pool-1", "sk-pool-2"] * 2


class ChoosyProvider(ScriptedProvider):
    """Refuses one key."""

    def __init__(self) -> None:
        super().__init__(self._reply)

    def _reply(self, request: ScriptedRequest) -> Reply:
        if self.requests[-1].headers["authorization"].endswith("sk-pool-1"):
            return (Refuse(401, "invalid_api_key", "Wrong key."),)
        return answer_by_message(request)


async def test_a_refused_key_costs_the_person_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn is answered with the next key, each request to the vendor has an id of its own, and `top` and
    `doctor` show the key that rests without showing it."""
    for name in ("POOL_KEY_1", "POOL_KEY_2"):
        monkeypatch.setenv(name, f"sk-pool-{name[-1]}")
    with ChoosyProvider() as provider:
        keys = [{"env": "POOL_KEY_1"}, {"env": "POOL_KEY_2"}]
        config = {**provider.settings, "plugins.keys.pools": {"openai": {"keys": keys}}}
        async with platform(config=config) as running:
            assert (await running.say("say:Here.")).text == "Here."
            assert (await running.say("say:Again.")).text == "Again."
            seen = await OverviewReader(running.bus).read()
            context = CheckContext(running.config, running.home, False, AsyncExitStack(), bus=running.bus)
            report = await models_keys(context)
    assert len(provider.answer_requests) == 3
    (resting,) = [key for key in seen.key_pools[0].keys if key.fault]
    assert resting.fault == "authentication" and "sk-pool" not in repr(seen.key_pools)
    assert report is not None and report.status == "warning" and resting.digest in report.summary
