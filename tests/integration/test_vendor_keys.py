"""The key of a request, at the wire: each adapter that takes one sends exactly that key."""

from typing import Any

import pytest

from trunkline.api.model import BlockCompleter
from trunkline.testing.platform import platform
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
