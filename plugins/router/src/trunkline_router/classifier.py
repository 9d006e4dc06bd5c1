"""Asks a model for the category of a message: once, and a second time if the first answer names none (MN-T2)."""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trunkline import Completer, CompletionError, ErrorCode, MemoryFile, Message
from trunkline_router.category import CATEGORIES, Category
from trunkline_router.preferences import RouterPreferences
from trunkline_router.prompts import as_data, prompt

log = logging.getLogger(__name__)

PURPOSE = "route"

LAST_MESSAGES, LETTERS = 3, 200
"""How many messages of the conversation the model is shown, and how many characters of each."""

LONGEST = 4_000
"""Characters of the message that the model is shown."""

ANSWER_TOKENS = (300, 2_000)
"""The largest answer to the first and to the second question, in tokens. The second one has room for reasoning."""

_THINKING = re.compile(r"<(think|thinking|thought)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)

_BLOCK_TYPES = ("text", "thinking", "redacted_thinking", "reasoning")


class ModelFailed(Exception):
    """No model answered. The text says why."""


async def classify(
    text: str,
    history: Sequence[Message],
    choices: RouterPreferences,
    files: Mapping[str, MemoryFile],
    completer: Completer,
) -> Category | None:
    """Return the category that a model names, None if it names none twice. Raises ModelFailed."""
    question = _question(text, history, choices, files)
    failure: CompletionError | None = None
    for number, most in enumerate(ANSWER_TOKENS):
        try:
            answer = await completer.complete(
                question,
                purpose=PURPOSE,
                model=choices.model,
                max_tokens=most,
                timeout=choices.timeout,
                reasoning=number > 0,
            )
        except CompletionError as error:
            failure = error
            if error.code in (ErrorCode.OVER_BUDGET, ErrorCode.PANIC):
                break
            continue
        failure = None
        if category := category_in(answer.text):
            return category
    if failure is not None:
        raise ModelFailed(str(failure))
    return None


def category_in(answer: str) -> Category | None:
    """Return the category that an answer names, None if it names another word or several (MN-F5)."""
    plain = visible_text(answer).strip().strip("\"'`*_.,:;!?()[] \n\t").lower()
    return next((one for one in CATEGORIES if plain == one), None)


def visible_text(answer: str) -> str:
    """Return the text of an answer without reasoning: of an answer in content blocks, that of its text blocks."""
    text = _THINKING.sub("", answer).strip()
    if not text.startswith("["):
        return text
    try:
        blocks: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(blocks, list) or not all(
        isinstance(one, dict) and one.get("type") in _BLOCK_TYPES for one in blocks
    ):
        return text
    said = [one.get("text") for one in blocks if one["type"] == "text"]
    return _THINKING.sub("", "".join(one for one in said if isinstance(one, str))).strip()


def _question(
    text: str, history: Sequence[Message], choices: RouterPreferences, files: Mapping[str, MemoryFile]
) -> str:
    listed = "\n".join(f"{name}: {what}" for name, what in choices.descriptions().items())
    said = [one for one in history if one.role in ("user", "assistant") and one.content.strip()]
    shown = "\n".join(f"{one.role}: {one.content.strip()[:LETTERS]}" for one in said[-LAST_MESSAGES:])
    return prompt(
        "route",
        files,
        categories=listed,
        conversation=as_data("conversation", shown) if shown else "",
        message=as_data("message", text[:LONGEST]),
    )
