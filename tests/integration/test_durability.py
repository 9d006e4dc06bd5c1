"""The durability settings reach the server, and weaken only the guarantees that the documentation names.

A process crash loses nothing under any setting; the tests cause such crashes. A test cannot cut the power.
"""

import json
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.config import load_config
from trunkline.contracts.turns.feed_messages import TextReset, TurnEnded
from trunkline.runtime.supervisor import BootError
from trunkline.testing.platform import Platform, TurnAnswer, clean_environ, platform
from trunkline_bus import EmbeddedServer, ServerSettings, TopologyConflict
from trunkline_bus.server.child_process import find_binary
from trunkline_bus.streams.retry import request_with_retry

from .shared_platforms import ALL_WORKERS, shared_platform

pytestmark = pytest.mark.anyio

EASY = {"bus.sync_interval": 60, "bus.feed_storage": "memory", "memory.fsync": False}
"""Everything given up that can be."""


def with_model(provider: str, **more: Any) -> dict[str, Any]:
    return {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
        **more,
    }


async def kept(running: Platform | ProcessPlatform, stream: str) -> dict[str, Any]:
    config: dict[str, Any] = (await request_with_retry(running.bus.link, f"STREAM.INFO.{stream}"))["config"]
    return config


async def repeated(running: Platform | ProcessPlatform, answer: TurnAnswer) -> str:
    """Return the text shown to a later reader."""
    return (await running.answer(answer.accepted)).text


def server_configuration(store: Path) -> dict[str, Any]:
    """Return nats-server's own reading of the configuration written for it."""
    command = [find_binary(None), "-c", store / "server.conf", "-p", "-1", "-m", "-1"]
    with subprocess.Popen([*command, "--ports_file_dir", store], stderr=subprocess.DEVNULL) as process:
        try:
            with urllib.request.urlopen(f"{_monitoring(store)}/jsz?config=1", timeout=60) as said:
                config: dict[str, Any] = json.load(said)["config"]
                return config
        finally:
            process.kill()


def _monitoring(store: Path) -> str:
    """The address that the server chose, once it has written it down."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for file in store.glob("*.ports"):
            with suppress(ValueError):  # half written
                return str(json.loads(file.read_text())["monitoring"][0])
        time.sleep(0.02)
    raise AssertionError("the server did not say where it listens")


@pytest.mark.parametrize(("sync", "always", "seconds"), [("always", True, None), (2.5, False, 2.5)])
async def test_the_sync_interval_reaches_the_server(
    tmp_path: Path, sync: Any, always: bool, seconds: Any
) -> None:
    """The server reports ``bus.sync_interval`` as its own setting; the default is ``always``."""
    assert load_config(tmp_path, environ={}).settings.bus.sync_interval == "always"
    async with platform(tmp_path, config={"bus.sync_interval": sync}, workers=()):
        pass
    said = server_configuration(tmp_path / "bus")
    assert bool(said.get("sync_always")) is always
    assert always or said["sync_interval"] == seconds * 1e9


async def test_retention_settings_reach_the_streams(tmp_path: Path) -> None:
    """The feed alone moves to memory; inbox, journal and ledger stay in files under any setting."""
    async with platform(tmp_path, config=EASY, workers=()) as running:
        assert (await kept(running, "FEED"))["storage"] == "memory"
        assert "persist_mode" not in await kept(running, "FEED")
        for stream in ("INBOX", "JOURNAL", "EFFECT"):
            config = await kept(running, stream)
            assert config["storage"] == "file" and config.get("persist_mode", "") != "async"


async def test_the_feed_moves_between_file_and_memory(tmp_path: Path) -> None:
    """The embedded server recreates the feed at the start, and earlier turns are read from their journals."""
    async with platform(tmp_path) as running:
        answer = await running.say("hello")
        assert (await kept(running, "FEED"))["storage"] == "file"
    for feed in ("memory", "file"):
        async with platform(tmp_path, config={"bus.feed_storage": feed}) as running:
            assert (await kept(running, "FEED"))["storage"] == feed
            assert await repeated(running, answer) == answer.text != ""
            again = await running.say("and now?", conversation=answer.accepted.conversation)
            view = await running.gateway.conversation(answer.accepted.conversation)
            assert view.messages[-1].content == again.text


async def test_an_external_server_keeps_its_feed(tmp_path: Path) -> None:
    """Others may be using it, so the start is refused, the error names the stream and the setting, and nothing is
    removed."""
    async with EmbeddedServer(ServerSettings(store_dir=tmp_path / "own")) as server:
        environ = {**clean_environ(), "NATS_PASSWORD": server.password}
        own = {"bus.url": server.url, "bus.user": server.user, "bus.password": {"env": "NATS_PASSWORD"}}
        async with platform(tmp_path / "home", config=own, environ=environ) as running:
            answer = await running.say("hello")
        with pytest.raises(BootError, match=r"stream FEED exists with another storage") as refused:
            async with platform(
                tmp_path / "home", config={**own, "bus.feed_storage": "memory"}, environ=environ
            ):
                pass
        assert isinstance(refused.value.cause, TopologyConflict)
        async with platform(tmp_path / "home", config=own, environ=environ) as running:
            assert await repeated(running, answer) == answer.text


@pytest.fixture(scope="module")
async def module_platform(provider: str) -> AsyncIterator[ProcessPlatform]:
    async with process_platform(config=with_model(provider, **EASY), workers=ALL_WORKERS) as running:
        yield running


@pytest.mark.kill
@pytest.mark.parametrize("victims", [("nats",), ("nats", "monitor"), ("nats", "gateway"), ("nats", "memory")])
async def test_a_crash_with_relaxed_durability_leaves_each_message_answered(
    module_platform: ProcessPlatform, victims: tuple[str, ...]
) -> None:
    """With the weakest settings, killing the server and a worker during a stream leaves each message answered once,
    the shown text contiguous, and the turn readable later, although its feed is lost."""
    async with shared_platform(module_platform) as running:
        accepted = await running.send("slow:40:40")
        events = []
        with anyio.fail_after(60):
            async for event in running.gateway.watch(accepted.conversation, accepted.turn):
                events.append(event)
                if len(events) == 4:
                    for victim in victims:
                        running.kill(victim)
                    for victim in victims[1:]:
                        await running.restart(victim)
        assert isinstance(events[-1], TurnEnded) and events[-1].reason == "stop"
        answer = TurnAnswer(accepted, tuple(events), events[-1])
        words = " ".join(f"word-{number}" for number in range(1, 41))
        assert answer.text == words
        assert len(victims) > 1 or not any(isinstance(event, TextReset) for event in events)
        view = await running.gateway.conversation(accepted.conversation)
        assert [message.content for message in view.messages] == ["slow:40:40", words]
        running.kill("nats")
        assert await repeated(running, answer) == words
