"""Detect milestones: a completed task or a resolved issue, once the person confirms it. Pure; ``fact_store``
stores them."""

import re

import msgspec

from trunkline_learning.text import cut
from trunkline_learning.turns import FinishedTurn, Provenance

CONFIDENCE = 0.95
TASK, ISSUE = "task-completion", "issue-resolution"

_ISSUE = re.compile(
    r"\b(error|bug|broken|fail(s|ed|ing|ure)?|crash(es|ed)?|exception|traceback|issue|problem)\b"
)


class Milestone(msgspec.Struct, frozen=True, kw_only=True):
    """A note to keep; ``tag`` says of which kind it is."""

    text: str
    tag: str
    source: Provenance
    confidence: float = CONFIDENCE


def milestone_of(turn: FinishedTurn) -> Milestone | None:
    """The note on a turn that went well, as the person said; None for talk without tools."""
    if not turn.by_person or not turn.tools or not turn.task.strip():
        return None
    tools = ", ".join(turn.tool_names[:5])
    if mended := _recovered_tool(turn) or _ISSUE.search(turn.task.casefold()):
        after = f" after {mended} had failed" if isinstance(mended, str) else ""
        return Milestone(
            text=f"Resolved: {cut(turn.task, 200)} (with {tools}{after}).", tag=ISSUE, source=turn.source
        )
    return Milestone(text=f"Done: {cut(turn.task, 200)} (with {tools}).", tag=TASK, source=turn.source)


def _recovered_tool(turn: FinishedTurn) -> str:
    """A tool that failed first and then did what it should; "" when none did."""
    failed: set[str] = set()
    for tool in turn.tools:
        if tool.failed:
            failed.add(tool.name)
        elif tool.name in failed:
            return tool.name
    return ""
