"""The independent checker compares each call's reported outcomes with its external effects. It is pure and knows no
worker."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.workers.monitor.turn_messages import UNDECIDED, UNFINISHED
from trunkline.workers.tools.error_outcomes import VERIFY

Sort = Literal["doubled", "lost", "unreported", "false"]
Standing = Literal["", "started", "finished"]

NOT_RUN = ("was not run", "nothing was run", "denied by", "not run now")


@dataclass(frozen=True, slots=True)
class Case:
    """One call, after the run has come to rest.

    ``effects`` is the number of times that its effect happened, counted outside. ``outcomes`` are those in the journal,
    ``stored`` the results in the conversation, ``shown`` the results that a reader of the feed received. ``ledger`` is
    the outcome there. ``standing`` is the last ledger record by a tools worker that was killed during the call, None
    when none was killed. ``answers`` are the outcomes given to other callers with the same key. ``cut``: the turn was
    ended by a cancel. ``made``: the journal records the call as the model's. A call without a record was never made by
    the turn that another owner continued.
    """

    mark: str
    fault: str
    struck: bool
    effects: int
    outcomes: Sequence[ToolOutcome] = ()
    stored: Sequence[str] = ()
    shown: Sequence[str] = ()
    ledger: ToolOutcome | None = None
    standing: Standing | None = None
    answers: Sequence[ToolOutcome] = ()
    cut: bool = False
    made: bool = True
    ended: bool = True
    tool: str = "transfer"

    @property
    def boundary(self) -> str:
        """Return the boundary at which it was stopped."""
        return self.mark.partition("@")[2]

    @property
    def reported(self) -> str:
        """Return the outcome that the model finally receives."""
        return self.stored[0] if len(self.stored) == 1 else ""

    @property
    def outcome(self) -> ToolOutcome | None:
        """The outcome that counts."""
        return self.outcomes[0] if self.outcomes else None

    @property
    def doubt(self) -> bool:
        """Report whether the model received an unknown outcome."""
        if self.outcome is None:
            return self.reported == UNFINISHED
        return self.outcome.status == "unknown" and VERIFY in self.reported

    @property
    def in_doubt(self) -> bool:
        """Report whether the outcome cannot be known: the worker was killed after recording the start and before the
        end."""
        return self.standing == "started"


@dataclass(frozen=True, slots=True)
class Finding:
    """A promise that was not kept."""

    sort: Sort
    mark: str
    what: str


def judge(case: Case) -> Iterator[Finding]:
    """Return every contradiction between a call's reports and its effects."""
    wrong = (*_happened(case), *_reported(case), *_agree(case)) if case.made else tuple(_never_made(case))
    for sort, what in wrong:
        yield Finding(sort, case.mark, f"{what} ({case.fault}) {case}")


def _never_made(case: Case) -> Iterator[tuple[Sort, str]]:
    """Its monitor lost the turn before it recorded the model's output, and the next owner ended the turn."""
    if case.effects or case.ledger is not None:
        yield "unreported", "no record has it as a call, and it was run"
    if not (case.cut and case.ended):
        yield "lost", "the model called it, and no record has it"


def _happened(case: Case) -> Iterator[tuple[Sort, str]]:
    if case.effects > 1:
        yield "doubled", f"the effect happened {case.effects} times"
    status = case.outcome.status if case.outcome else None
    if status == "ok" and case.effects != 1:
        yield "false", "said to be done, and is not"
    if case.effects and _denies(case.reported):
        yield "false", "said not to have been run, and was"
    if case.effects and status == "error":
        yield "unreported", "it happened, and what is told is an error like any other"


def _reported(case: Case) -> Iterator[tuple[Sort, str]]:
    if not case.ended:
        yield "lost", "its turn did not end"
    elif len(case.stored) != 1:
        yield ("doubled" if case.stored else "lost"), f"the model is told of it {len(case.stored)} times"
    if len(case.outcomes) > 1:
        yield "doubled", f"the journal has {len(case.outcomes)} outcomes"
    if not case.outcomes and not case.cut:
        yield "lost", "the journal has no outcome"
    if case.in_doubt and not case.doubt:
        yield "unreported", "nobody can know how it ended, and that is not told"


def _agree(case: Case) -> Iterator[tuple[Sort, str]]:
    """Check that all readers received the same outcome."""
    if case.outcome is None:
        if case.ended and case.reported not in (UNFINISHED, UNDECIDED):
            yield "false", f"without an outcome the model is told {case.reported!r}"
        return
    texts = {case.outcome.output, *case.stored, *case.shown}
    if len(texts) > 1:
        yield "false", "the journal, the conversation and the feed differ"
    if case.ledger is not None and case.ledger.output != case.outcome.output and not _denies(case.reported):
        yield "false", "the ledger says something else"
    if any(answer.output != case.outcome.output for answer in case.answers):
        yield "false", "those who asked under the same key were told something else"


def _denies(text: str) -> bool:
    return any(words in text for words in NOT_RUN) and "it may have run before" not in text
