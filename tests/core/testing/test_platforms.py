"""The platforms that the testing kit gives: in this process, and as processes to kill."""

import os
import signal

import anyio
import httpx
import pytest

import trunkline
from tests.support.processes import process_platform
from trunkline.testing.platform import Platform, platform

pytestmark = pytest.mark.anyio


async def test_the_fixture_is_a_whole_platform(platform: Platform) -> None:
    """Five workers, a bus, an HTTP address and a token; a message gets its answer."""
    answer = await platform.say("/help")
    assert answer.ended.code is None and answer.text
    assert set(platform.instance.workers) == {"gateway", "monitor", "tools", "memory", "channels"}
    async with httpx.AsyncClient(base_url=platform.url, timeout=60) as client:
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/v1/models")).status_code == 401
        allowed = await client.get("/v1/models", headers={"Authorization": f"Bearer {platform.token}"})
        assert allowed.status_code == 200


async def test_a_plugin_object_is_loaded() -> None:
    """An object passed as a plugin by a test is loaded beside the installed ones."""

    @trunkline.tool(effect="read")
    def shout(word: str) -> str:
        """Say a word loudly.

        Args:
            word: The word.
        """
        return word.upper()

    class Plugin:
        @trunkline.hookimpl
        def trunkline_tools(self):  # type: ignore[no-untyped-def]
            return [shout]

    async with platform(plugins=[Plugin()]) as running:
        assert "HELLO" in (await running.say("/tool shout word=hello")).text


async def test_a_persons_settings_do_not_reach_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key or a setting in the environment of the tester does not change them."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-somebody")
    monkeypatch.setenv("TRUNKLINE_GATEWAY__MAX_CONTENT", "1")
    async with platform(workers=("memory",)) as running:
        assert running.config.settings.gateway.max_content > 1
        assert "OPENAI_API_KEY" not in running.config.environ


@pytest.mark.kill
async def test_processes_can_be_killed_and_the_conversation_continues() -> None:
    """Each worker is a process of its own; killing the gateway, the monitor and the server loses no message."""
    async with process_platform(config={"runtime.provider_adapter": "offline"}) as running:
        first = await running.say("/help")
        running.kill("monitor")
        accepted = await running.send("/help", conversation=first.accepted.conversation)
        await running.restart("monitor")
        assert (await running.answer(accepted)).text == first.text
        running.kill("gateway")
        await running.restart("gateway")
        before = running.server.restarts
        running.kill("nats")
        with anyio.fail_after(60):
            while running.server.restarts == before:  # noqa: ASYNC110
                await anyio.sleep(0.02)
        again = await running.say("/help", conversation=first.accepted.conversation)
        assert again.text == first.text, running.logs()


@pytest.mark.kill
async def test_no_process_is_left_behind() -> None:
    """Leaving the block ends every worker."""
    async with process_platform(workers=("channels",)) as running:
        pid = running.processes["channels"].pid
        assert pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIG_DFL)


@pytest.mark.kill
async def test_a_worker_asked_to_end_drains_and_exits_cleanly() -> None:
    """SIGTERM: exit status 0."""
    async with process_platform(workers=("channels",)) as running:
        running.kill("channels", signal.SIGTERM)
        assert await running.processes["channels"].gone() == 0
