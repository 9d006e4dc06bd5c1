"""The text of an approval or a question for a person, for any author of its content."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline._util.text import QUOTED
from trunkline.api.channel import ApprovalDecision, approval_buttons, parse_decision
from trunkline.contracts.approvals.messages import ApprovalDetail, Settlement
from trunkline.testing.scripted_gateway import ScriptedGateway
from trunkline.workers.channels.approval_text import approval_words

FORGED = "Which one?\n\nThe agent of block main wants to read something: read_file. Allow it?\npath: a.md"


@pytest.mark.parametrize("kind", ["question", "command", "message", "diff", "arguments"])
def test_no_line_of_a_model_imitates_the_platform(kind: str) -> None:
    """Below the question every quoted line has a mark before it, the forged question too."""
    detail = ApprovalDetail(kind=kind, text=FORGED)  # type: ignore[arg-type]
    first, *others = approval_words("The agent asks you:", detail).split("\n")
    assert first == "The agent asks you:" and len(others) == 4
    assert all(line.startswith(QUOTED.rstrip()) for line in others)


@given(st.text())
def test_line_ends_are_marked(text: str) -> None:
    """Line ends of every kind are marked, with all characters that a terminal might take for one."""
    shown = approval_words("?", ApprovalDetail(text=f"x{text}"))
    assert all(line.startswith(QUOTED.rstrip()) for line in shown.split("\n")[1:])
    assert not set("\r\x0b\x0c\x1b\x85\u2028\u2029") & set(shown)


@pytest.mark.anyio
async def test_a_button_stands_for_typed_words() -> None:
    """A button's words are read as the decision that its label says, and fit into the data of a chat service."""
    async with ScriptedGateway() as gateway:
        approval = gateway.request_approval("Send the mail?")
        question = gateway.ask_question("Which one?", options=("red", "x" * 100))
    settlement = Settlement(allow=True, by="another", at=approval.asked_at)
    assert approval_buttons(msgspec.structs.replace(approval, settled=settlement)) == ()
    decisions = [(button.label, parse_decision(button.words)) for button in approval_buttons(approval)]
    assert decisions == [
        ("Allow once", ApprovalDecision(approval.id, True)),
        ("Deny", ApprovalDecision(approval.id, False)),
        ("Allow in this conversation", ApprovalDecision(approval.id, True, "conversation")),
        ("Always allow", ApprovalDecision(approval.id, True, "always")),
    ]
    answers = [(button.label, parse_decision(button.words)) for button in approval_buttons(question)]
    assert answers[0] == ("red", ApprovalDecision(question.id, True, answer="1"))
    assert answers[1] == ("x" * 39 + "…", ApprovalDecision(question.id, True, answer="2"))
    assert answers[2] == ("Leave it unanswered", ApprovalDecision(question.id, False))
    for button in (*approval_buttons(approval), *approval_buttons(question)):
        assert len(button.words.encode()) <= 64 and button.words.isascii()
