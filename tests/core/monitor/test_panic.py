"""Panic where turns run: they end, and no model is asked until it is released (CC-F17, C31)."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

import trunkline
from tests.support.processes import process_platform
from trunkline.api.model import BlockCompleter, ModelAdapter
from trunkline.contracts.workers.panic import Panic, PanicRelease
from trunkline.contracts.workers.subjects import PANIC, PANIC_RELEASE
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.home.kill_switch import KillSwitch
from trunkline.testing.platform import platform
from trunkline.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

SETTINGS = {"runtime.provider_adapter": "scripted"}


class Models:
    """A plugin that brings a scripted model."""

    def __init__(self) -> None:
        self.model = ScriptedModel()

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]


async def test_turns_end_and_no_model_is_asked(tmp_path: Path) -> None:
    """Panic is announced over the bus, as other machines receive it; a message sent during panic gets the reason;
    panic survives a restart, and the release is announced too."""
    home, models = tmp_path / "home", Models()
    async with platform(home, plugins=[models], config=SETTINGS) as running:
        accepted = await running.send("slow:2000:20")
        events = []
        with anyio.fail_after(60):
            async for event in running.gateway.watch(accepted.conversation, accepted.turn):
                events.append(event)
                if len(events) == 3:
                    await running.bus.publish(PANIC, Panic(by="somebody"))
        assert events[-1].reason == "cancelled"
        assert KillSwitch(home).read().by == "somebody"
        asked = len(models.model.requests)
        assert (await running.say("say:no")).ended.code == ErrorCode.PANIC
        with pytest.raises(trunkline.CompletionError) as refused:
            await BlockCompleter(running.bus, "main", actor="owner").complete("say:no")
        assert (refused.value.code, str(refused.value)) == ("panic", FIXED_SENTENCES[ErrorCode.PANIC])
        assert len(models.model.requests) == asked
    async with platform(home, plugins=[models], config=SETTINGS) as running:
        assert (await running.say("say:no")).ended.code == ErrorCode.PANIC
        await running.bus.publish(PANIC_RELEASE, PanicRelease(by="somebody"))
        with anyio.fail_after(60):
            await KillSwitch(home).wait_until(False)
        assert (await running.say("say:yes")).text == "yes"


async def test_the_command_lists_stopped_and_unresponsive_workers(
    tmp_path: Path,
) -> None:
    """The command waits for all workers that run turns or tools. An unresponsive one is named with its process, and
    the command fails."""
    async with process_platform(tmp_path / "home", workers=("memory", "tools", "monitor")) as running:

        async def panic(*words: str) -> "subprocess.CompletedProcess[str]":
            command = [sys.executable, "-m", "trunkline.cli.main", "panic", *words]
            environ = dict(running.environ)
            return await anyio.to_thread.run_sync(
                lambda: subprocess.run(
                    command, env=environ, capture_output=True, text=True, timeout=60, check=False
                )
            )

        with anyio.fail_after(
            180
        ):  # a machine that is busy may let nobody be heard in time, or a beat run out
            while json.loads((done := await panic("--json")).stdout)["stopped"] != ["monitor", "tools"]:
                pass
            assert (done.returncode, json.loads(done.stdout)["silent"]) == (0, []), running.logs()
            hangs = f"the tools worker (process {running.processes['tools'].pid} on "
            while hangs not in done.stderr:
                running.kill("tools", signal.SIGCONT)
                assert (await panic("--release")).returncode == 0
                await panic()
                running.kill("tools", signal.SIGSTOP)
                done = await panic()
                assert "No tools worker has answered." in done.stdout
            assert done.returncode == 1
        running.kill("tools", signal.SIGCONT)
