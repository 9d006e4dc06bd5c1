"""All bad plugins at once in one platform: it gets ready, each is named with its reason, and the others answer."""

import json
from pathlib import Path

import anyio
import pytest

from tests.support.processes import process_platform

from .corpus import BAD, GOOD, GUARDS, install, install_bad
from .test_quarantine import called, names, plugins

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

CONFIG = {"plugins.import_timeout": 4.0, "plugins.stall_timeout": 60.0, "runtime.provider_adapter": "offline"}


async def test_a_platform_full_of_bad_plugins_answers(tmp_path: Path) -> None:
    """Every plugin that only breaks itself is installed beside a good one. The platform answers a conversation, the
    good tool answers after each bad one was called, and ``plugins list`` names the fault and the fix of each."""
    assert len(BAD) >= 40
    site = tmp_path / "site"
    install(site, "a-good", GOOD)
    harmless = [dist for dist, bad in BAD.items() if not bad.kills]
    for dist in harmless:
        install_bad(site, dist)
    environ = {"PYTHONPATH": str(site)}
    async with process_platform(tmp_path / "home", config=CONFIG, environ=environ, workers=()) as running:
        await running.start("memory")  # waits for those whose import never ends; the others need not
        await running.start_all(("tools", "gateway", "monitor"))
        assert "good" in await names(running)
        for dist in harmless:
            if BAD[dist].call:
                outcome = await called(running, BAD[dist].call)
                assert outcome is not None and BAD[dist].gives in outcome.output, (dist, outcome)
        good = await called(running, "good")
        assert good is not None and good.output == "a good answer"
        answer = await running.say("/tool good")
        assert "a good answer" in answer.text
        assert all(process.alive for process in running.processes.values())
        reported = plugins(running, "plugins", "list", "--json")
        assert reported.returncode == 0, reported.stderr
        report = json.loads(reported.stdout)
        states = {state["owner"]: state for state in report["plugins"]}
        troubles = {trouble["owner"]: trouble["reason"] for trouble in report["troubles"]}
        for dist in harmless:
            bad, state = BAD[dist], states[dist]
            wanted = {bad.status, "quarantined"} if "took longer" in bad.says else {bad.status}
            assert state["status"] in wanted, state
            assert bad.says in state.get("reason", "") + state.get("hint", "") + troubles.get(dist, ""), (
                dist,
                state,
            )
            assert state["status"] == "loaded" or state["hint"], state


@pytest.mark.parametrize("dist", GUARDS)
async def test_a_bad_guard_only_refuses(tmp_path: Path, dist: str) -> None:
    """A guard that does not proceed, or fails after it did, fails the call with a reason; the worker continues."""
    site = tmp_path / "site"
    install(site, "a-good", GOOD)
    install(site, dist, GUARDS[dist])
    async with process_platform(
        tmp_path / "home", config=CONFIG, environ={"PYTHONPATH": str(site)}, workers=("memory", "tools")
    ) as running:
        for _ in range(2):
            outcome = await called(running, "good")
            assert outcome is not None and outcome.status == "error"
            assert "because a check at the stage policy failed" in outcome.output
        with anyio.fail_after(60):
            assert "good" in await names(running)
