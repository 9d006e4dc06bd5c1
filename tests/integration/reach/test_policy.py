"""Policy reaches every call: each kind of tool, in each scope, allowed, denied and asked about."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import pytest

from trunkline.cli._support.permissions import change_permissions, grant_for_minutes
from trunkline.contracts.audit.messages import AuditEntry
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.tools.messages import ToolOutcome

from .policy_cases import READS, ROWS, Row
from .tool_platform import KINDS, Reached

pytestmark = [pytest.mark.anyio, pytest.mark.kill]


async def chosen(reached: Reached, row: Row) -> None:
    """Return the settings of the owner of the row's block."""
    if row.table:
        await change_permissions(reached.running.bus, row.block, row.table)
    if row.minutes is not None:
        await grant_for_minutes(reached.running.bus, row.block, "god", row.minutes)
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
    request = WriteManyMemory(files=rules, actor="owner", reason="rules of the owner")
    await reached.running.bus.call(MEMORY_WRITE_MANY, request)


async def test_policy_reaches_every_call(reached: Reached) -> None:
    """Native, plugin, isolated plugin, MCP and remote tools, in block, workspace, system, plan and God Mode: an
    allowed call runs once, a denied one and one without approval do not run, the model or the person is told, and
    the audit log has the decision with the rule that made it."""
    cells = [Cell(row, kind) for row in ROWS for kind in KINDS]
    for row in ROWS:
        await chosen(reached, row)
    async with anyio.create_task_group() as tasks:
        for cell in cells:
            tasks.start_soon(cell.call, reached)
    allowed = [cell for cell in cells if cell.row.expected == "allowed"]
    mine = {cell.mark for cell in cells}
    assert sorted(mark for mark in reached.marks() if mark in mine) == sorted(cell.mark for cell in allowed)
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
        """Return the mark that its tool leaves outside."""
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
        """Check the reply and the audit log."""
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
    """Check the refusal, its reason, and that no effect happened."""
    assert name in outcome.output and "denies it" in outcome.output and "Nothing was run." in outcome.output


def asked(outcome: ToolOutcome, name: str) -> None:
    assert name in outcome.question and outcome.call_hash


SAID = {"allowed": done, "denied": refused, "asked": asked}
