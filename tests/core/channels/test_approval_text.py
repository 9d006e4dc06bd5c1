"""The text of an approval or a question for a person, for any author of its content."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline._util.text import QUOTED
from trunkline.api.channel import ApprovalDecision, Sentences, approval_buttons, approval_news, parse_decision
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


ID = "abcde-fghij"
GERMAN = Sentences(language="de")


@pytest.mark.parametrize(
    ("text", "allow", "scope"),
    [
        (f"erlauben {ID}", True, "once"), (f"Ja {ID}", True, "once"), (f"erlauben {ID} immer", True, "always"),
        (f"erlauben {ID} Gespräch", True, "conversation"), (f"ablehnen {ID}", False, "once"),
        (f"nein {ID}", False, "once"), (f"approve {ID} always", True, "always"), (f"deny {ID}", False, "once"),
        (f"approve {ID} immer", True, "always"), (f"ablehnen {ID} immer", False, "once"), (f"no {ID}", False, "once"),
    ],
)  # fmt: skip
def test_words_decide_in_german_and_english(text: str, allow: bool, scope: str) -> None:
    """In a German home the German words decide, and the English ones as before."""
    assert parse_decision(text, say=GERMAN) == ApprovalDecision(ID, allow, scope)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        f"a {ID}", f"j {ID}", f"y {ID}", f"erlauben {ID} nein", f"erlauben {ID} nicht", f"erlauben {ID} a",
        f"nicht erlauben {ID}", f"erlauben {ID} immer nicht", "erlauben abcde", f"vielleicht {ID}", f"immer {ID}",
    ],
)  # fmt: skip
def test_unclear_words_decide_nothing(text: str) -> None:
    """More or other words than the listed ones are a message to the agent."""
    assert parse_decision(text, say=GERMAN) is None and parse_decision(text) is None


def test_german_words_are_no_decision_in_an_english_home() -> None:
    """What no prompt names there is a message."""
    assert parse_decision(f"erlauben {ID}") is None and parse_decision(f"approve {ID} immer") is None


@pytest.mark.anyio
@pytest.mark.parametrize("language", ["en", "de"])
async def test_the_shown_words_are_understood(language: str) -> None:
    """Each line that the news of an approval proposes is read as the decision that it is proposed for."""
    say = Sentences(language=language)
    async with ScriptedGateway() as gateway:
        approval = gateway.request_approval("Send the mail?")
        question = gateway.ask_question("Which one?")
    wide = msgspec.structs.replace(approval, detail=ApprovalDetail(text="x", shape="s", covers="read_file"))
    news = approval_news(wide, say=say).split("\n")
    allow, deny = news[-1].partition(": ")[2].split(", oder " if language == "de" else ", or ")
    words, _, scopes = allow.rpartition(" ")
    assert parse_decision(words, say=say) == ApprovalDecision(approval.id, True)
    found = [parse_decision(f"{words} {scope}", say=say) for scope in scopes.strip("[]").split("|")]
    assert [one.scope for one in found if one] == ["conversation", "always"]
    assert parse_decision(deny, say=say) == ApprovalDecision(approval.id, False)
    assert all(scope in news[-2] for scope in scopes.strip("[]").split("|"))
    reply = approval_news(question, say=say).split("\n")[-1].partition(": ")[2].partition(" (")[0]
    assert parse_decision(f"{reply} red", say=say) == ApprovalDecision(question.id, True, answer="red")
    english = ("approve", "deny", "conversation", "always")
    assert all(word in approval_news(wide, say=say, before="/") for word in english)
