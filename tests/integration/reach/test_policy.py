"""Policy reaches every call: each kind of tool, in each scope, allowed, denied and asked about."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from trunkline.cli.owned.permitting import change, grant
from trunkline.messages.audit import AuditEntry
from trunkline.messages.memory import WriteManyMemory
from trunkline.messages.tools import ToolOutcome
from trunkline.subjects import MEMORY_WRITE_MANY

from .house import KINDS, Reached, house

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

WRITES, READS = 0, 1
"""Which tool of a kind is called."""


@dataclass(frozen=True, slots=True)
class Row:
    """What the owner has chosen for a block, and what must come of a call. ``decision`` is as the audit log says it."""

    scope: str
    expected: str
    tool: int
    table: dict[str, Any]
    denied: bool = False
    minutes: int | None = None
    asking: bool = False

    @property
    def block(self) -> str:
        """The block of this row."""
        return f"{self.scope}-{self.expected}-{'reads' if self.tool else 'writes'}"


def scoped(scope: str) -> list[Row]:
    """Allowed, denied by the owner's rule, and asked about, in a scope."""
    return [
        Row(scope, "allowed", WRITES, {"scope": scope, "approvals": "none"}),
        Row(scope, "denied", WRITES, {"scope": scope, "approvals": "none"}, denied=True),
        Row(scope, "asked", WRITES, {"scope": scope, "approvals": "some"}),
        Row(scope, "asked", READS, {"scope": scope, "approvals": "all"}),
    ]


ROWS = [
    *scoped("block"),
    *scoped("workspace"),
    *scoped("system"),
    Row("plan", "allowed", READS, {"plan": True}),
    Row("plan", "denied", WRITES, {"plan": True, "approvals": "none"}),
    Row("plan", "asked", READS, {"plan": True, "approvals": "all"}),
    Row("god", "allowed", WRITES, {}, minutes=5),
    Row("god", "denied", WRITES, {}, minutes=5, denied=True),
    Row("god", "allowed", READS, {"approvals": "all"}, minutes=5, asking=True),
]
"""God Mode permits unasked, whatever else wants a person asked; what is denied stays denied."""


async def chosen(reached: Reached, row: Row) -> None:
    """What the owner of the row's block has chosen."""
    if row.table:
        await change(reached.running.bus, row.block, row.table)
    if row.minutes is not None:
        await grant(reached.running.bus, row.block, "god", row.minutes)
    if not (row.denied or row.asking):
        return
    rules = {
        f"policies/{row.block}-{kind}.json": json.dumps(
            {
                "subject": f"block:{row.block}", "resource": f"tool:{names[row.tool]}", "action": "*",
                "effect": "deny" if row.denied else "allow",
                "conditions": {} if row.denied else {"requires_approval": True},
            }
        )
        for kind, names in KINDS.items()
    }  # fmt: skip
    wish = WriteManyMemory(files=rules, actor="owner", reason="rules of the owner")
    await reached.running.bus.call(MEMORY_WRITE_MANY, wish)


async def test_policy_reaches_every_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Native, plugin, isolated plugin, MCP and remote, in block, workspace, system, plan and God Mode: what is allowed
    is done once, what is denied or asked about is not done at all, the model or the person is told, and the audit log
    has the decision with the rule that made it."""
    blocks = [row.block for row in ROWS]
    cells = [Cell(row, kind) for row in ROWS for kind in KINDS]
    async with house(tmp_path, monkeypatch, blocks) as reached:
        for row in ROWS:
            await chosen(reached, row)
        async with anyio.create_task_group() as tasks:
            for cell in cells:
                tasks.start_soon(cell.call, reached)
        allowed = [cell for cell in cells if cell.row.expected == "allowed"]
        assert sorted(reached.marks()) == sorted(cell.mark for cell in allowed)
        plain = [cell for cell in allowed if cell.row.tool == READS]
        noted = await reached.audited({cell.key for cell in cells}, 2 * len(cells) - len(plain))
        for cell in cells:
            cell.check([one for one in noted if one.call == cell.key])


@dataclass(slots=True)
class Cell:
    """One cell of the table."""

    row: Row
    kind: str
    outcome: ToolOutcome | None = None

    @property
    def mark(self) -> str:
        """What its tool leaves outside."""
        return f"{self.row.block} {self.kind}"

    @property
    def key(self) -> str:
        """The key of its call."""
        return f"call_{self.row.block.replace('-', '_')}_{self.kind}"

    @property
    def name(self) -> str:
        """Its tool."""
        return KINDS[self.kind][self.row.tool]

    async def call(self, reached: Reached) -> None:
        """Call it."""
        self.outcome = await reached.call(self.name, self.row.block, {"mark": self.mark}, self.key)

    def check(self, noted: Sequence[AuditEntry]) -> None:
        """What was told, and what the audit log says."""
        outcome, row, where = self.outcome, self.row, f"{self.mark}: {self.outcome} {noted}"
        assert outcome is not None
        assert outcome.status == {"allowed": "ok", "denied": "error", "asked": "approval"}[row.expected], (
            where
        )
        SAID[row.expected](outcome, self.name)
        made = [one for one in noted if one.event == "decision"]
        assert all(one.by and one.why for one in made), where
        plain = row.expected == "allowed" and row.tool == READS  # of which the line of the call tells enough
        decisions = [(one.decision, one.block, one.tool) for one in made]
        assert decisions == ([] if plain else [(row.expected, row.block, self.name)]), where
        calls = [(one.status, one.block, one.tool) for one in noted if one.event == "call"]
        assert calls == [(outcome.status, row.block, self.name)], where


def done(outcome: ToolOutcome, name: str) -> None:
    assert "left " in outcome.output


def refused(outcome: ToolOutcome, name: str) -> None:
    """What was refused, why, and that nothing happened."""
    assert name in outcome.output and "denies it" in outcome.output and "Nothing was run." in outcome.output


def asked(outcome: ToolOutcome, name: str) -> None:
    assert name in outcome.question and outcome.call_hash


SAID = {"allowed": done, "denied": refused, "asked": asked}
