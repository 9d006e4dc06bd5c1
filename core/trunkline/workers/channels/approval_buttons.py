"""The buttons of an approval or a question. Each stands for words that a person could type as well."""

from dataclasses import dataclass

from trunkline._util.text import one_line
from trunkline.contracts.approvals.messages import Approval
from trunkline.contracts.sentences.sentences import ENGLISH_SENTENCES, Sentences

MAX_LABEL = 40
"""Characters of a button's label: what a phone shows of it."""

MAX_OPTIONS = 8
"""Proposed answers that get a button. Any answer can be typed."""


@dataclass(frozen=True, slots=True)
class Button:
    """A button. ``words`` are what it means, as ``parse_decision`` reads them: at most 64 bytes of ASCII."""

    label: str
    words: str


def approval_buttons(approval: Approval, say: Sentences = ENGLISH_SENTENCES) -> tuple[Button, ...]:
    """Return the buttons of an approval that waits, none for one that is settled. A service without buttons shows the
    words, as ``approval_news`` does.
    """
    id = approval.id
    if approval.settled is not None:
        return ()
    if approval.detail.is_question:
        options = enumerate(approval.detail.options[:MAX_OPTIONS], 1)
        answers = (Button(_label(option), f"answer {id} {number}") for number, option in options)
        return (*answers, Button(say("button.skip"), f"deny {id}"))
    wider = (
        Button(say("button.conversation"), f"approve {id} conversation"),
        Button(say("button.always"), f"approve {id} always"),
    )
    return (
        Button(say("button.once"), f"approve {id}"),
        Button(say("button.deny"), f"deny {id}"),
        *(wider if approval.detail.shape else ()),
    )


def _label(option: str) -> str:
    text = one_line(option)
    return text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}…"
