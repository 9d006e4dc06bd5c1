"""Independent of the questions that a monitor published, later questions of another monitor are published too."""

from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.turns.journal_messages import (
    ApprovalAsked,
    ApprovalRecorded,
    JournalEntry,
    ModelCallFinished,
    ModelCallPlanned,
    ToolFinished,
    ToolPlanned,
    TurnParked,
    TurnRecord,
    TurnResumed,
)
from trunkline.contracts.turns.messages import ApprovalDecided
from trunkline.contracts.turns.subjects import INBOX, JOURNAL
from trunkline.testing.platform import platform

from .approval_helpers import ask, asking, question_of

pytestmark = pytest.mark.anyio


async def test_a_question_of_another_monitor_is_published(provider: str, tmp_path: Path) -> None:
    """A monitor publishes a question and parks the turn. Another takes it over, and is killed once the journal has a
    further, unpublished question. The first one, which receives the decision, publishes it."""
    async with platform(tmp_path, config=asking(provider)) as running:
        accepted = await running.send(ask("Which one?", then="say:done"))
        first = await question_of(running, accepted, "Which one?")
        keys = {"conversation": accepted.conversation, "turn": accepted.turn}
        with anyio.fail_after(60):  # it is put down, and the message has left the inbox
            while await running.bus.last(INBOX, conversation=accepted.conversation) is not None:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        journal = [stored async for stored in running.bus.history(JOURNAL, **keys)]
        (asked,) = [
            one for stored in journal for one in stored.data.entries if isinstance(one, ApprovalAsked)
        ]
        call = ToolCall(id="call_other", name="ask_human", arguments={"question": "Which other?"})
        outcome = ToolOutcome(call="k", status="ok", output="The owner answered: red")
        assert isinstance(asked.detail, ApprovalDetail)
        detail = replace(asked.detail, text="Which other?")
        entries: tuple[JournalEntry, ...] = (
            TurnResumed(),
            ApprovalRecorded(call_id=first.call, allow=True, by="owner", answer="red"),
            ToolFinished(call_id=first.call, outcome=outcome),
            ModelCallPlanned(step=1),
            ModelCallFinished(step=1, tool_calls=(call,), finish_reason="tool_calls"),
            ToolPlanned(call=call, key="key_other"),
            replace(asked, call_id=call.id, call_hash="hash_other", detail=detail),
            TurnParked(),
        )
        written, talk = journal[-1], accepted.conversation
        record = TurnRecord(
            turn=accepted.turn, epoch=written.data.epoch + 1, owner="another", entries=entries
        )
        await running.bus.append(JOURNAL, record, expect=written.seq, **keys)
        decision = ApprovalDecided(
            turn=accepted.turn,
            call=first.call,
            call_hash=first.call_hash,
            allow=True,
            by="owner",
            answer="red",
        )
        await running.bus.append(INBOX, decision, conversation=talk)
        second = await question_of(running, accepted, "Which other?")
        assert second.call == call.id
