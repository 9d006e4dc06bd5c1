"""What a block's table of permissions and the owner's policies do to calls, in a tools worker on a real server."""

from typing import Any

import pytest

import trunkline

pytestmark = pytest.mark.anyio


class Bench:
    """Tools of every effect, which note that they ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        return [self._tool(effect) for effect in ("read", "write", "send", "exec")]

    def _tool(self, effect: Any) -> trunkline.Tool:
        @trunkline.tool(effect=effect, name=f"do_{effect}")
        def act(text: str = "") -> str:
            """Does it."""
            self.ran.append(effect)
            return "done"

        return act


async def test_a_denial_refuses_and_says_why(tools: Any) -> None:
    """Nothing runs; the model is told what was refused, by which policy, and what would be allowed."""
    bench = Bench()
    async with tools(bench) as caller:
        caller.files["policies/no-letters.json"] = (
            '{"subject": "type:agent", "resource": "tool:do_send", "action": "send", "effect": "deny"}'
        )
        refused = await caller.call("do_send", {"text": "x"})
        assert refused.status == "error"
        assert "do_send (send) was refused to the block main: a policy denies it." in refused.output
        assert "no-letters" in refused.output
        assert "Nothing was run." in refused.output
        assert (await caller.call("do_write", {"text": "x"})).status == "ok"
        assert bench.ran == ["write"]


async def test_programs_are_refused_until_the_block_may_run_them(tools: Any) -> None:
    """MB-T8: the text names the command that grants it; a denial takes it back even from a policy that permits it."""
    bench = Bench()
    async with tools(bench) as caller:
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


@pytest.mark.parametrize(
    "broken",
    ["", "{", "[]", '{"subject": "*"}', '{"subject": "*", "resource": "*", "action": "*", "effect": "maybe"}',
     '{"subject": "*", "resource": "*", "action": "*", "effect": "deny", "conditions": {"unless": 1}}'],
)  # fmt: skip
async def test_a_policy_that_cannot_be_read_refuses_everything(tools: Any, broken: str) -> None:
    """It might be a denial. The text names the file to mend."""
    bench = Bench()
    async with tools(bench) as caller:
        caller.files["policies/odd.json"] = broken
        refused = await caller.call("do_read")
        assert "policies/odd.json cannot be read as a policy" in refused.output
        assert not bench.ran
