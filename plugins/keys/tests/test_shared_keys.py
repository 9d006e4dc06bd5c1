"""Keys that several monitor processes share: no limit is ever exceeded, and no key is shown."""

from collections import Counter
from pathlib import Path

import anyio
import pytest

from tests.support.processes import process_platform
from trunkline import CompletionError
from trunkline.api.hooks import WorkerKind
from trunkline.api.model import KEY_POOL_BUCKET, BlockCompleter
from trunkline.testing.script import Reply, Say, ScriptedRequest, answer
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio

CONCURRENT, REQUESTS = 2, 9
CANARIES = {"POOL_KEY_1": "sk-canary-0000000001", "POOL_KEY_2": "sk-canary-0000000002"}


class MeasuredProvider(ScriptedProvider):
    """Counts at each request how many run with the same key."""

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.running: list[int] = []

    def _reply(self, request: ScriptedRequest) -> Reply:
        key = self.requests[-1].headers["authorization"]
        same = [one for one in self.requests if one.headers.get("authorization") == key]
        self.running.append(sum(one.outcome == "running" for one in same))
        return answer(Say("one two three four", pause=0.05))


async def test_three_monitors_exceed_no_limit(tmp_path: Path) -> None:
    """Of 24 requests at a time, each key takes two at a time and nine in the minute; the rest is refused after waiting.
    A monitor is killed meanwhile: its share returns, and its requests are sent by others within the same limits."""
    with MeasuredProvider() as provider:
        config = {
            **provider.settings,
            "plugins.failover.attempts": 1,
            "plugins.keys.max_wait": 45.0,
            "plugins.keys.pools": {
                "openai": {
                    "keys": [{"env": name} for name in CANARIES],
                    "concurrent": CONCURRENT,
                    "requests_per_minute": REQUESTS,
                }
            },
        }
        kinds: tuple[WorkerKind, ...] = ("monitor", "memory", "tools")
        results: Counter[str] = Counter()
        async with process_platform(
            tmp_path / "home", config=config, environ=CANARIES, workers=kinds
        ) as running:
            for name in ("second", "third"):
                await running.start("monitor", name)

            async def ask(number: int) -> None:
                try:
                    await BlockCompleter(running.bus, "main").complete(f"number {number}")
                    results["answered"] += 1
                except CompletionError as error:
                    results[str(error.code)] += 1

            async with anyio.create_task_group() as tasks:
                for number in range(24):
                    tasks.start_soon(ask, number)
                with anyio.fail_after(60):
                    while results["answered"] < 3:  # noqa: ASYNC110  other processes act
                        await anyio.sleep(0.02)
                running.kill("second")
            (pool,) = [entry.value for entry in await running.bus.kv(KEY_POOL_BUCKET).entries()]
            logs = "".join(process.text() for process in running.processes.values())
        sent = Counter(request.headers["authorization"] for request in provider.answer_requests)
        assert pool is not None and len(sent) == 2
        assert max(provider.running) <= CONCURRENT
        assert max(sent.values()) <= REQUESTS and sum(sent.values()) >= 2 * REQUESTS - CONCURRENT
        assert results["provider_error"] >= 24 - 2 * REQUESTS
        assert "sk-canary" not in repr(pool) + logs
