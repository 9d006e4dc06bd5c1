"""The content of each model call, compared with the stored messages: the order is the one that the model receives.
No I/O."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from trunkline.contracts.conversations.messages import Message

Said = tuple[str, str]
"""Who said what: the role and the text. Tool calls and results are not compared, an effect has checks of its own."""

Given = tuple[Said, ...]
"""What one call was given, oldest first."""

RESUMED = (
    "Your last answer was cut before",
    "Your last turn ended before",
    "This conversation goes on after",
)
"""How a text begins that tells a model how a conversation goes on (MB-F13). Nobody said it, and nothing stores it."""


@dataclass(slots=True)
class Judged:
    """``calls`` are the recorded model calls, by turn; ``problems`` their faults."""

    calls: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def given_of(body: dict[str, Any]) -> Given:
    """Return the messages of people and of the model in a request."""
    said = ((message["role"], _text(message.get("content"))) for message in body.get("messages", ()))
    spoken = ((role, text) for role, text in said if role in ("user", "assistant") and text)
    return tuple((role, text) for role, text in spoken if not (role == "user" and text.startswith(RESUMED)))


def judge(given: Iterable[Given], messages: Sequence[Message]) -> Judged:
    """Report whether each call about this conversation contains all messages stored before the one that it answers."""
    stored = [message for message in messages if message.role in ("user", "assistant") and message.content]
    places = {message.content: number for number, message in enumerate(stored) if message.role == "user"}
    whole = [(message.role, message.content) for message in stored]
    judged = Judged()
    for said in given:
        last = next((number for number in reversed(range(len(said))) if said[number][0] == "user"), None)
        place = None if last is None else places.get(said[last][1])
        if last is None or place is None:
            continue  # about another conversation
        judged.calls[stored[place].turn or ""] += 1
        if list(said[: last + 1]) != whole[: place + 1]:
            judged.problems.append(
                f"the model was given {_short(said[: last + 1])}, stored is {_short(whole[: place + 1])}"
            )
    return judged


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _short(said: Sequence[Said]) -> str:
    return "; ".join(
        f"{role}: {text[:40]}…{text[-40:]}" if len(text) > 80 else f"{role}: {text}" for role, text in said
    )
