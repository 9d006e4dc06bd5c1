"""The question about the category of a message, and what is made of the answers."""

from typing import Any

import pytest

from trunkline import CompletionError, ErrorCode, MemoryFile, Message
from trunkline.api.model import Completion
from trunkline.contracts.conversations.messages import utc_now
from trunkline_router.classifier import ModelFailed, category_in, classify
from trunkline_router.preferences import CategoryPreferences, RouterPreferences
from trunkline_router.prompts import FILES

pytestmark = pytest.mark.anyio


class Answers:
    """A completer that gives these answers in turn, and notes the questions."""

    def __init__(self, *answers: str | ErrorCode) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[Any, dict[str, Any]]] = []

    async def complete(self, prompt: Any, **options: Any) -> Completion:
        self.asked.append((prompt, options))
        answer = self._answers.pop(0)
        if isinstance(answer, ErrorCode):
            raise CompletionError(answer, "scripted")
        return Completion(text=answer, adapter="a", model="m", purpose="route")


async def ask(answers: Answers, text: str = "explain recursion", **fields: Any) -> str | None:
    history = fields.pop("history", ())
    files = fields.pop("files", {})
    return await classify(text, history, RouterPreferences(**fields), files, answers)


@pytest.mark.parametrize(
    ("answer", "category"),
    [
        ("research", "research"),
        ("<think>hmm</think>research", "research"),
        ('"Code."', "code"),
        ("`full`\n", "full"),
        ('[{"type": "thinking", "thinking": "code?"}, {"type": "text", "text": "knowledge"}]', "knowledge"),
        ("<think>research", None),
        ("banana", None),
        ("code or research", None),
        ("[1", None),
        ("[1]", None),
        ("", None),
    ],
)
def test_MN_T2_an_answer_is_read_tolerantly(answer: str, category: str | None) -> None:
    """Reasoning, quotes, punctuation and content blocks are no part of the word; another word is no category."""
    assert category_in(answer) == category


async def test_MN_T2_a_second_question_follows_an_answer_without_a_category() -> None:
    """``""`` and ``code`` make ``code`` with two calls; the first one asks the model not to reason (MN-F12)."""
    answers = Answers("", "code")
    assert await ask(answers) == "code"
    assert [options["reasoning"] for _, options in answers.asked] == [False, True]
    assert {options["purpose"] for _, options in answers.asked} == {"route"}


async def test_MN_T2_two_answers_without_a_category_decide_nothing() -> None:
    """The router makes the turn ``full``; there is no third question."""
    answers = Answers("", "banana", "code")
    assert await ask(answers) is None
    assert len(answers.asked) == 2


async def test_a_failure_is_asked_about_again_and_then_reported() -> None:
    """A budget that is used up ends the questions at once."""
    assert await ask(Answers(ErrorCode.PROVIDER_ERROR, "code")) == "code"
    with pytest.raises(ModelFailed):
        await ask(Answers(ErrorCode.PROVIDER_ERROR, ErrorCode.PROVIDER_ERROR))
    spent = Answers(ErrorCode.OVER_BUDGET, "code")
    with pytest.raises(ModelFailed):
        await ask(spent)
    assert len(spent.asked) == 1


async def test_MN_F5_the_model_sees_the_last_three_messages_shortened() -> None:
    """Of each message 200 characters; of tools nothing."""
    history = [
        Message(
            id=f"m{number}", role="user" if number % 2 else "assistant", content=f"say-{number} " + "x" * 300
        )
        for number in range(5)
    ]
    history.append(Message(id="t", role="tool", content="a result", tool_call_id="c"))
    answers = Answers("code")
    await ask(answers, history=history)
    question = answers.asked[0][0]
    assert "say-1" not in question and "say-2" in question and "say-4" in question
    assert "a result" not in question and "x" * 200 not in question


async def test_MN_F4_the_prompt_and_the_descriptions_are_the_owners() -> None:
    """The file replaces the prompt; a value that it does not name is added, and a message names no value."""
    name = FILES["route"]
    file = MemoryFile(
        path=name[1:], content="Pick one of:\n{categories}\nNow.", hash="", modified_at=utc_now()
    )
    answers = Answers("code")
    categories = {"code": CategoryPreferences(description="my compiler")}
    await ask(answers, "what is {categories}?", files={name: file}, categories=categories)
    question = answers.asked[0][0]
    assert question.startswith("Pick one of:\nsimple_qa: ")
    assert "code: my compiler" in question and "what is {categories}?" in question
