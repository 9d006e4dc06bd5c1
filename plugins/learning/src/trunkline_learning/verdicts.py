"""Judge a turn: by the person's next message, else by the turn's tools and answer. Pure.

The words are fixed lists. The person's next message decides before everything else, and a correction before thanks:
"thanks, but that is wrong" is no success. Episode, playbook and numbers all go by the verdict that is made here.
"""

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from trunkline_learning.turns import FinishedTurn

Verdict = Literal["success", "failure", "unknown"]

SUCCESS = ("thanks", "thank you", "perfect", "great", "worked", "good", "excellent", "awesome")
CORRECTION = ("wrong", "error", "fix", "actually", "instead", "incorrect", "no", "not right")
NOT_WORKING = (
    "not working",
    "did not work",
    "didn't work",
    "does not work",
    "doesn't work",
    "not good",
    "still fails",
)
"""Corrections that hold a success marker within them."""

HARMLESS = ("no problem", "no worries", "no rush", "no need", "no more", "no hurry", "not wrong", "no thanks")
"""Phrases that contain a correction marker and correct nothing."""

ERRORS = (
    "error:", "failed:", "exception:", "could not", "unable to", "error occurred", "failed to", "an error", "the error",
)  # fmt: skip
"""Phrases of an answer that report a failure."""


class Markers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words to look for. What a person writes as a bare ``no`` or ``yes`` may come as a boolean; it is a word all
    the same."""

    success: tuple[str | bool | int | float, ...] = SUCCESS
    correction: tuple[str | bool | int | float, ...] = CORRECTION
    errors: tuple[str | bool | int | float, ...] = ERRORS


DEFAULT_MARKERS = Markers()


def judge_turn(turn: FinishedTurn, markers: Markers = DEFAULT_MARKERS) -> Verdict:
    """Judge a turn by its own tools and answer: ``failure`` or ``unknown``."""
    if turn.reason == "error" or _has_unrecovered_failure(turn):
        return "failure"
    answer = turn.answer.casefold()
    return "failure" if any(pattern in answer for pattern in _words(markers.errors)) else "unknown"


def judge_next_message(next_message: str, markers: Markers = DEFAULT_MARKERS) -> Verdict:
    """Judge a turn by the message after it."""
    said = " ".join(next_message.casefold().replace("’", "'").split())
    if _has(said, NOT_WORKING):
        return "failure"
    for phrase in HARMLESS:
        said = said.replace(phrase, " ")
    if _has(said, _words(markers.correction)):
        return "failure"
    return "success" if _has(said, _words(markers.success)) else "unknown"


class VerdictChange(msgspec.Struct, frozen=True):
    """The verdicts on a turn before and after the person's next message."""

    was: Verdict
    now: Verdict


def verdict_change(
    turn: FinishedTurn, next_message: str, markers: Markers = DEFAULT_MARKERS
) -> VerdictChange | None:
    """Return how the next message changes the turn's own verdict; None when it does not."""
    was, said = judge_turn(turn, markers), judge_next_message(next_message, markers)
    return None if said in ("unknown", was) else VerdictChange(was, said)


def _has_unrecovered_failure(turn: FinishedTurn) -> bool:
    """Report whether a tool's last word was an error: a failed call that a later one made good is no failure."""
    last = {tool.name: tool.failed for tool in turn.tools}
    return any(last.values())


def _has(text: str, markers: Iterable[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(marker)}(?!\w)", text) for marker in markers)


def _words(markers: Iterable[str | bool | int | float]) -> list[str]:
    spelt = {True: "yes", False: "no"}
    return [
        spelt[one] if isinstance(one, bool) else str(one).casefold().strip() for one in markers if one != ""
    ]
