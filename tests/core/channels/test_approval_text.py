"""The text of an approval or a question for a person, for any author of its content."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline._util.text import QUOTED
from trunkline.contracts.approvals.messages import ApprovalDetail
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
