"""Classifies messages as evidence, or as questions and repetitions (decision 50). Pure."""

import re

from trunkline import Message
from trunkline.api.nlp import tokenize

DERIVED_TOOLS = frozenset(
    (
        "consolidate",
        "crowded_topics",
        "get_plan_status",
        "known_facts",
        "list_blocks",
        "list_documents",
        "list_skills",
        "memory_blame",
        "memory_history",
        "memory_list",
        "memory_read",
        "memory_search",
        "playbook_strategies",
        "present_plan",
        "reason",
        "recall",
        "retrieve",
        "search_in_documents",
        "todo_read",
        "todo_write",
        "use_skill",
    )
)
"""The tools that come with Trunkline and whose results are derived. A message of before results said so is judged by
its tool's name."""

LONGEST_QUESTION = 2_000
"""Letters: who writes more than that brings something along."""

MAX_GREETING_WORDS = 3
"""Words of a sentence that says nothing beside a question."""

_REMARK = re.compile(r"\s*[\[(][^\[\]()]*[\])]\s*$")
"""A channel's remark about an attachment, at the end of a message."""

_BREAK = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")
_MARKS = ("?", "？")
_BEGINS = re.compile(
    r"(?:(?:who|what|where|when|why|how|which)(?:[’']s|\s+(?:is|are|was|were|do|does|did|can|could|will|would|should"
    r"|has|have|had|many|much|often|long))|tell\s+me\s+(?:about|who|what|where|when|why|how|which|if|whether))\b",
    re.IGNORECASE,
)
"""The beginnings of English questions without a question mark."""


def is_derived(message: Message) -> bool:
    """Report whether a message only repeats what memory holds."""
    if message.derived is not None:
        return message.derived
    return message.role == "tool" and message.name in DERIVED_TOOLS


def ends_with_question(text: str) -> bool:
    """Report whether a message ends with a question."""
    return _ends_asking(text[-LONGEST_QUESTION:])


def is_only_question(text: str) -> bool:
    """Report whether a message says nothing beside what it asks."""
    if len(text) > LONGEST_QUESTION:
        return False
    if text.startswith("/"):
        return True  # a command
    sentences = [
        one for one in _BREAK.split(_REMARK.sub("", text)) if len(tokenize(one)) > MAX_GREETING_WORDS
    ]
    return all(map(_is_question, sentences)) if sentences else _is_question(text)


def _is_question(sentence: str) -> bool:
    return _ends_asking(sentence) or _BEGINS.match(sentence.strip()) is not None


def _ends_asking(text: str) -> bool:
    return _REMARK.sub("", text).rstrip().endswith(_MARKS)
