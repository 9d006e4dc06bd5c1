"""Every parameter of every tool of the platform, given escaping values, on a platform without approvals."""

from pathlib import Path

import anyio
import pytest

from trunkline.contracts.tools.messages import ListTools, ToolOutcome, ToolSpec
from trunkline.contracts.tools.subjects import LIST_TOOLS
from trunkline.testing.platform import Platform, platform
from trunkline.testing.tool_calls import assert_audited, call_tool
from trunkline_bus import new_id

from .test_unapproved_effects import arguments

pytestmark = pytest.mark.anyio

SECRET = "the-secret-of-the-outside"

EACH = 2
"""How many ways out each parameter is given; together they are given all of them."""

OTHERS = {"web_search", "enter_plan_mode"}
"""What would go online, and what would forbid the rest."""


def ways(outside: Path, home: Path) -> list[str]:
    """Return forbidden targets: outside of the workspace by name, link, home folder and root; the token; the rules."""
    return [
        f"{outside}/secret.md", "../../../outside/secret.md", "out/secret.md", "~/secret.md", "a/../../../outside",
        "/policies/evil.json", "linked.md", f"{home}/token", "../../token", "/../../token", "block.toml",
        "/blocks/main/block.toml", "file:///etc/passwd", "missing.md",
    ]  # fmt: skip


def picture(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


async def test_MB_T6_PA_T2_no_parameter_of_any_tool_leads_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No error reveals content of the outside or the token, no file outside, no rule and no setting changes, and
    each refusal has a reason, no incident, and an entry in the audit log."""
    outside, home = tmp_path / "outside", tmp_path / "home"
    outside.mkdir()
    (outside / "secret.md").write_text(SECRET)
    monkeypatch.setenv("HOME", str(outside))
    config = {"permissions.approvals": "none", "permissions.allow_shell": True}
    async with platform(home, config=config, workers=("memory", "tools", "gateway")) as running:
        workspace = running.home.workspace("main")
        workspace.mkdir(parents=True)
        (workspace / "out").symlink_to(outside)
        (workspace / "linked.md").symlink_to(outside / "secret.md")
        rules = running.home.memory / "blocks/main/block.toml"
        before = picture(outside), rules.read_bytes(), running.token
        reported = await tried(running, ways(outside, home))
        assert len(reported) > 150
        for (tool, name, way), outcome in reported.items():
            assert SECRET not in outcome.output and running.token not in outcome.output, (tool, name, way)
            assert outcome.status in ("ok", "error", "approval"), (tool, name, way, outcome)
            assert "incident_" not in outcome.output, (tool, name, way, outcome)
            assert outcome.status != "error" or len(outcome.output) > 20, (tool, name, way, outcome)
        assert (picture(outside), rules.read_bytes(), running.token) == before
        assert not (running.home.memory / "policies").exists() and not (home / "trunkline.toml").exists()
        await assert_audited(running.bus, {outcome.call: outcome.status for outcome in reported.values()})


async def tried(running: Platform, given: list[str]) -> dict[tuple[str, str, str], ToolOutcome]:
    """Return the outcome of each parameter with each of some escaping values, with valid values for the other
    parameters."""
    catalogue = await running.bus.call(LIST_TOOLS, ListTools(block="main"))
    limiter, reported = anyio.CapacityLimiter(8), dict[tuple[str, str, str], ToolOutcome]()

    async def one(spec: ToolSpec, name: str, way: str) -> None:
        wrong = {**arguments(spec), name: way}
        async with limiter:
            reported[spec.name, name, way] = await call_tool(
                running.bus, spec.name, wrong, conversation=new_id("conv")
            )

    async with anyio.create_task_group() as tasks:
        turn = 0
        for spec in catalogue.tools or ():
            for name, schema in spec.parameters.get("properties", {}).items():
                if (
                    spec.name in OTHERS
                    or name == "command"
                    or '"string"' not in str(schema).replace("'", '"')
                ):
                    continue
                for _ in range(EACH):
                    tasks.start_soon(one, spec, name, given[turn % len(given)])
                    turn += 1
    return reported
