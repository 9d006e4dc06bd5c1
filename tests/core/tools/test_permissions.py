"""The effects of a block's permissions and the owner's policies on calls, in a tools worker on a real server."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import trunkline
from trunkline.contracts.policies.messages import Policy
from trunkline.workers.tools.quotas import Quotas

from .conftest import Caller, in_new_block, tools_worker

pytestmark = pytest.mark.anyio


NO_SANDBOX = {"plugins.disabled": ["sandbox"]}
"""What passes the policies is refused by the next guard then, so that no program runs here."""


class Bench:
    """Tools of every effect, which note that they ran."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, for the next test."""
        self.ran: list[str] = []

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="exec", argv="command")
        def run_it(command: list[str]) -> str:
            """Runs it."""
            self.ran.append("run")
            return "done"

        return [run_it, *(self._tool(effect) for effect in ("read", "write", "send", "exec"))]

    def _tool(self, effect: Any) -> trunkline.Tool:
        @trunkline.tool(effect=effect, name=f"do_{effect}")
        def act(text: str = "") -> str:
            """Does it."""
            self.ran.append(effect)
            return "done"

        return act


@pytest.fixture(scope="module")
async def shared(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Bench, Caller]]:
    """One worker for the tests without settings of their own."""
    bench = Bench()
    async with tools_worker(tmp_path_factory.mktemp("tools"), bench) as caller:
        yield bench, caller


@pytest.fixture
def bench(shared: tuple[Bench, Caller]) -> Bench:
    """The tools of the shared worker, which have done nothing."""
    shared[0].forget()
    return shared[0]


@pytest.fixture
async def caller(shared: tuple[Bench, Caller], bench: Bench) -> AsyncIterator[Caller]:
    """The caller of the shared worker, in a block of its own. The owner's rules end with the test."""
    async with in_new_block(shared[1]) as caller:
        yield caller


async def test_a_denial_refuses_with_its_reason(caller: Caller, bench: Bench) -> None:
    """Nothing runs; the model is told the refused call, the policy, and the permitted calls."""
    await caller.remember(
        "policies/no-letters.json",
        '{"subject": "type:agent", "resource": "tool:do_send", "action": "send", "effect": "deny"}',
    )
    refused = await caller.call("do_send", {"text": "x"})
    assert refused.status == "error"
    assert f"do_send (send) was refused to the block {caller.block}: a policy denies it." in refused.output
    assert "no-letters" in refused.output
    assert "Nothing was run." in refused.output
    assert (await caller.call("do_write", {"text": "x"})).status == "ok"
    assert bench.ran == ["write"]


async def test_programs_are_refused_until_the_block_may_run_them(tools: Any) -> None:
    """MB-T8: the text names the command that grants it; a denial takes it back even from a policy that permits it."""
    bench = Bench()
    async with tools(bench, config=NO_SANDBOX) as caller:
        refused = await caller.call("do_exec", block="shell")
        assert "trunkline permissions shell --allow-shell" in refused.output
        await caller.remember("blocks/shell/block.toml", "[permissions]\nallow_shell = true\n")
        assert "only in a sandbox" in (await caller.call("do_exec", block="shell")).output
        await caller.remember("blocks/shell/block.toml", "[permissions]\nallow_shell = false\n")
        await caller.remember(
            "policies/run.json",
            '{"subject": "*", "resource": "tool:do_exec", "action": "exec", "effect": "allow"}',
        )
        assert "a policy denies it" in (await caller.call("do_exec", block="shell")).output
        assert "only in a sandbox" in (await caller.call("do_exec")).output


BROKEN = [
    "", "{", "[]", '{"subject": "*"}', '{"subject": "*", "resource": "*", "action": "*", "effect": "maybe"}',
    '{"subject": "*", "resource": "*", "action": "*", "effect": "deny", "conditions": {"unless": 1}}',
]  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_policy_that_cannot_be_read_refuses_everything(
    caller: Caller, bench: Bench, broken: str
) -> None:
    """The policy might be a denial. The text names the file to repair."""
    await caller.remember("policies/odd.json", broken)
    refused = await caller.call("do_read")
    assert "A policy cannot be read" in refused.output and "policies/odd.json" in refused.output
    assert not bench.ran


@pytest.mark.parametrize("broken", BROKEN)
async def test_an_unreadable_policy_at_the_first_call_refuses_everything(tools: Any, broken: str) -> None:
    """It has no earlier policies to go by. The text names the file to repair; the repaired file holds."""
    bench = Bench()
    async with tools(bench) as caller:
        caller.files["policies/odd.json"] = broken
        refused = await caller.call("do_read")
        assert refused.status == "error"
        assert "A policy cannot be read" in refused.output and "policies/odd.json" in refused.output
        assert not bench.ran
        await caller.remember(
            "policies/odd.json",
            '{"subject": "*", "resource": "tool:do_write", "action": "write", "effect": "deny"}',
        )
        assert (await caller.call("do_read")).status == "ok" and bench.ran == ["read"]


SLIPS = [
    *(("action", said) for said in ("wirte", "Write", "writes", "", "write:", "exec:walk")),
    *(
        ("subject", said)
        for said in ("blok:main", "Block:main", "block:*", "type:agnet", "typ:agent", "", "Agent", " *")
    ),
    *(
        ("resource", said)
        for said in ("tols:do_write", "Tool:do_write", "do_write", "", "tool:", "memory:x", "files:b")
    ),
    *(("resource", said) for said in ("tols:*", "files:blok*", "toll*")),
]


async def test_an_invalid_policy_refuses_everything(caller: Caller, bench: Bench) -> None:
    """No call would ever match such a rule, and it might be a denial. The text names file, line and word."""
    right = {"effect": "deny", "subject": "*", "resource": "tool:do_write", "action": "write"}
    for field, said in SLIPS:
        await caller.remember("policies/odd.json", json.dumps({**right, field: said}, indent=1))
        refused = await caller.call("do_read")
        line = list(right).index(field) + 2
        assert f"policies/odd.json, line {line}: {said!r}" in refused.output, (field, said, refused)
    assert not bench.ran


async def test_a_star_stands_for_any_part_of_a_resource(caller: Caller) -> None:
    """This includes the word for its kind; and a future tool may be named."""
    for resource in ("*", "tool:*", "t*", "*do_write", "tool*write", "*:*:do_write"):
        policy = {"subject": "*", "resource": resource, "action": "write", "effect": "deny"}
        await caller.remember("policies/no.json", json.dumps(policy))
        assert (await caller.call("do_write")).status == "error", resource
        assert (await caller.call("do_read")).status == "ok", resource
    policy = {
        "subject": "block:later",
        "resource": "tool:to_come",
        "action": "write:make",
        "effect": "deny",
    }
    await caller.remember("policies/no.json", json.dumps(policy))
    assert (await caller.call("do_write")).status == "ok"


# A number a day -----------------------------------------------------------------------------------------------


def few(number: int, **more: Any) -> str:
    conditions = {"max_per_day": number, **more}
    policy = {
        "subject": "*",
        "resource": "tool:do_send",
        "action": "send",
        "effect": "allow",
        "conditions": conditions,
    }
    return json.dumps(policy)


async def test_a_daily_limit_survives_restarts_and_concurrent_calls(tools: Any) -> None:
    """Ten calls at once, three permitted: three run. A restart of everything changes nothing."""
    bench = Bench()
    async with tools(bench) as caller:
        caller.files["policies/few.json"] = few(3)
        outcomes: list[str] = []

        async def one() -> None:
            outcomes.append((await caller.call("do_send")).status)

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(one)
        assert (outcomes.count("ok"), bench.ran) == (3, ["send"] * 3)
    async with tools(bench) as caller:
        caller.files["policies/few.json"] = few(3)
        refused = await caller.call("do_send")
        assert "3 times a day" in refused.output
        assert "few" in refused.output
        await caller.remember("policies/few.json", few(4))
        assert (await caller.call("do_send")).status == "ok"
        assert (await caller.call("do_send")).status == "error"
        assert bench.ran == ["send"] * 4


async def test_several_workers_share_one_count(caller: Caller) -> None:
    """Two connections that take at the same time never take more than there is."""
    policy = msgspec.structs.replace(msgspec.json.decode(few(25), type=Policy), id="shared")
    now = datetime.now(UTC)
    quotas, taken = (Quotas(caller.bus), Quotas(caller.bus)), []

    async def take(quota: Quotas) -> None:
        for _ in range(20):
            try:
                await quota.take(policy, now)
                taken.append(1)
            except trunkline.ToolError:
                pass

    async with anyio.create_task_group() as tasks:
        for quota in quotas:
            tasks.start_soon(take, quota)
    assert len(taken) == 25
    assert await quotas[0].used([policy], now) == {"shared": 25}


async def test_a_refused_call_is_not_counted(caller: Caller) -> None:
    """A call refused by a later stage uses nothing up."""
    await caller.remember("policies/few.json", few(1))
    assert (await caller.call("do_send", {"text": {"no": "text"}})).status == "error"
    assert (await caller.call("do_send", approved="another call")).status == "error"
    assert (await caller.call("do_send")).status == "ok"


async def test_a_policy_counts_in_its_hours(tools: Any) -> None:
    """Outside of its window a permission permits nothing by itself."""
    bench = Bench()
    hour = (datetime.now(UTC).hour + 12) % 24
    window = {"time_window": f"{hour:02}:00-{hour:02}:59"}
    policy = {
        "subject": "*",
        "resource": "tool:do_exec",
        "action": "exec",
        "effect": "allow",
        "conditions": window,
    }
    async with tools(bench, config=NO_SANDBOX) as caller:
        caller.files["policies/nightly.json"] = json.dumps(policy)
        assert "it may not run programs" in (await caller.call("do_exec")).output
        await caller.remember("policies/nightly.json", json.dumps({**policy, "conditions": {}}))
        assert "only in a sandbox" in (await caller.call("do_exec")).output


async def test_policies_reach_programs_too(tools: Any, tmp_path: Path) -> None:
    """A ``tool.json`` program that calls itself a read is refused like any tool, before any sandbox is asked."""
    folder = tmp_path / "sources" / "count"
    folder.mkdir(parents=True)
    manifest = {"name": "count", "description": "Counts.", "command": ["wc"], "effect": "read"}
    (folder / "tool.json").write_text(
        json.dumps({**manifest, "parameters": {"type": "object", "properties": {}}})
    )
    deny = {"subject": "block:main", "resource": "tool:cli:*", "action": "*", "effect": "deny"}
    async with tools(config={"runtime.tool_sources": [str(folder.parent)], **NO_SANDBOX}) as caller:
        caller.files["policies/no-programs.json"] = json.dumps(deny)
        assert "no-programs" in (await caller.call("count")).output
        assert "only in a sandbox" in (await caller.call("count", block="other")).output


async def test_mn_t5_planning_permits_plan_files_and_read_only_programs(tools: Any) -> None:
    """MN-T5: while planning, Markdown below ``plans/`` may be written, and programs run that only read."""
    bench = Bench()
    async with tools(bench, config={"permissions.approvals": "some", **NO_SANDBOX}) as caller:
        caller.files["blocks/main/block.toml"] = "[permissions]\nplan = true\nallow_shell = true\n"

        async def write(path: str) -> str:
            return str((await caller.call("write_file", {"path": path, "content": "x"})).status)

        assert [await write(path) for path in ("plans/a.md", "plans/deep/b.md", "./plans/c.md")] == ["ok"] * 3
        for path in (
            "plans/a.txt",
            "a.md",
            "plans",
            "plans/../a.md",
            "other/plans/a.md",
            "plans/.env",
            "plans/x.md/y",
        ):
            assert await write(path) == "error", path
        refused = await caller.call("delete_file", {"path": "plans/a.md"})
        assert "trunkline permissions main --no-plan" in refused.output
        assert (await caller.call("do_send")).status == "error"
        assert "--no-plan" in (await caller.call("run_it", {"command": ["rm", "x"]})).output
        assert "--no-plan" in (await caller.call("run_it", {"command": ["sort", "-o", "a", "b"]})).output
        assert "only in a sandbox" in (await caller.call("run_it", {"command": ["ls", "-l"]})).output
        assert bench.ran == []
