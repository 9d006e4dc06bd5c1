"""The calls under way in this worker: each key once, however many ask for it. No bus subscription in here.

A call outlives the request that brought it: who asks again under the same key joins it, or gets what the ledger has.
"""

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from trunkline.contracts.tools.messages import (
    BUSY,
    CallTool,
    QuestionAnswer,
    ToolOutcome,
    ToolProgress,
    ToolReply,
)
from trunkline.workers.tools.error_outcomes import encodable_text, incident_outcome
from trunkline_bus import Refusal

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 1.0

MOST_EARLY = 4096
"""Stops that are remembered for calls that have not come yet; a call is seconds behind its stop at most."""


@dataclass(eq=False, slots=True)
class ActiveCall:
    """One call on its way. ``note`` is its line of progress, ``stopped`` says why it was stopped.

    ``attempt`` is open while this worker runs the call, ``waiting`` while it looks after another that does. When it
    ended without an outcome it was handed back, and the caller asks another worker. ``resumed``: another worker began
    it. ``away``: it runs on another host and goes on there without us. ``tool`` and ``arguments`` are the call that is
    meant, once that is known: models call tools by other names too. ``loads`` names tools
    that the model is to have. ``derived``: its result repeats what memory holds.
    """

    call: CallTool
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    stopped: str | None = None
    outcome: ToolOutcome | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)
    question: ToolOutcome | None = None
    """What the call wants to know from a person, while it waits for that."""
    news: anyio.Event = field(default_factory=anyio.Event)
    """Set while there is something to tell its caller: a question, or the end."""
    limit: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Ends the tool when its time is over."""
    attempt: anyio.CancelScope | None = None
    waiting: anyio.CancelScope | None = None
    resumed: bool = False
    away: bool = False
    loads: tuple[str, ...] = ()
    derived: bool = False
    handed_back: bool = False
    unanswered: int = 0
    """How many questions it waited for in vain, which it may ask again and again."""
    _answered: anyio.Event = field(default_factory=anyio.Event)

    def report(self, note: str) -> None:
        """Show a line of progress with the next sign of life. May be called from any thread."""
        self.note = encodable_text(str(note)[:500])

    def load(self, names: Sequence[str]) -> None:
        """Have the model given these tools if the call succeeds. May be called from any thread."""
        self.loads = (*self.loads, *(encodable_text(str(name)) for name in names))

    def mark_derived(self) -> None:
        """Take it that the result repeats what memory holds. May be called from any thread."""
        self.derived = True

    def stop(self, why: str) -> None:
        """Cancel what of the call runs here; its records are still written. What runs elsewhere is waited for."""
        if self.stopped is None:
            self.stopped = why
            if self.attempt is not None:
                self.attempt.cancel()

    def answer_to(self, question: str) -> QuestionAnswer | None:
        """What a person said to the question with this hash."""
        return next((answer for answer in self.call.answers if answer.question == question), None)

    async def suspend(self, question: ToolOutcome) -> None:
        """End the call here, to be run again with an answer. Does not return."""
        self.question = question
        if self.attempt is not None:
            self.attempt.cancel()
        await anyio.sleep_forever()

    async def wait_for_answer(self, question: ToolOutcome) -> QuestionAnswer:
        """Let the caller know the question, and wait until somebody asks for the call again with the answer."""
        self.question = question
        self.unanswered += 1
        self.news.set()
        try:
            while (answer := self.answer_to(question.call_hash)) is None:
                await self._answered.wait()
        finally:
            self.question, self.news = None, anyio.Event()
        self.unanswered -= 1
        return answer

    def add_answers(self, answers: tuple[QuestionAnswer, ...]) -> None:
        """Take in what people said meanwhile."""
        if len(answers) > len(self.call.answers):
            self.call = msgspec.structs.replace(self.call, answers=answers)
            self.question, self.news = None, anyio.Event()
            self._answered.set()
            self._answered = anyio.Event()

    @contextmanager
    def pause_timeout(self) -> Iterator[None]:
        """The tool's time stands still."""
        left, self.limit.deadline = self.limit.deadline - anyio.current_time(), math.inf
        try:
            yield
        finally:
            self.limit.deadline = anyio.current_time() + left

    def release(self) -> None:
        """Wait no longer for another worker's outcome, or another host's."""
        if self.away and self.attempt is not None:
            self.handed_back = True
            self.attempt.cancel()
        if self.waiting is not None:
            self.waiting.cancel()


CallHandler = Callable[[ActiveCall], Awaitable[ToolOutcome | None]]
"""Carries a call out; None when it is handed back."""


class CallRegistry:
    """Runs calls in ``tasks`` by ``work``, at most ``most`` at a time."""

    def __init__(self, tasks: TaskGroup, work: CallHandler, most: int) -> None:
        self._tasks = tasks
        self._work = work
        self._most = most
        self._runs: dict[str, ActiveCall] = {}
        self._early: dict[str, str] = {}
        """Why calls were stopped that are not under way here: a stop is not stored, and may overtake its call."""

    async def call(self, call: CallTool) -> AsyncIterator[ToolReply]:
        """Start or join the call; a sign of life each second, then its outcome, or its question to a person.

        Raises:
            Refusal: the same key is under way with another tool or other arguments, or in another conversation; or
                there are as many calls as this worker takes (``busy``).
        """
        while (
            (run := self._joined(call)) is not None
            and run.call.approved is None
            and call.approved is not None
        ):
            # Somebody asked for it before the person's yes, and was not heard: that one must not tell of a question.
            async for sign in _heartbeats(run, attrgetter("ended")):
                yield sign
            if run.outcome is not None and run.outcome.status != "approval":
                yield run.outcome
                return
        run = run or self._begin(call)
        run.add_answers(call.answers)
        async for sign in _heartbeats(run, attrgetter("news")):
            yield sign
        told = run.outcome or run.question
        if told is not None:
            yield told

    def _joined(self, call: CallTool) -> ActiveCall | None:
        """The run of this call, if it is under way. Raises Refusal when that is another call by the same key."""
        run = self._runs.get(call.call)
        if run is not None and _call_identity(run.call) != _call_identity(call):
            raise Refusal(
                "conflict",
                f"The call {call.call} is under way with another tool or other arguments, or in another conversation.",
            )
        return run

    def has(self, key: str) -> bool:
        """Report whether a call is under way here."""
        return key in self._runs

    def stop(self, key: str, why: str) -> None:
        """Stop a call if it is under way here, or should it still come."""
        run = self._runs.get(key)
        if run is not None:
            run.stop(why)
            return
        self._early[key] = why
        if len(self._early) > MOST_EARLY:
            forgotten = next(iter(self._early))
            del self._early[forgotten]
            log.warning("the stop of call %s is forgotten: too many stops came before their calls", forgotten)

    def stop_all(self, why: str) -> None:
        """Stop every call that is under way here."""
        for run in list(self._runs.values()):
            run.stop(why)

    async def drain(self, seconds: float) -> None:
        """Wait until no call is under way; after ``seconds`` the rest is stopped, and its outcome recorded."""
        with anyio.move_on_after(seconds):
            await self._all_ended()
        for run in list(self._runs.values()):
            if not run.away:
                run.stop("the tools worker was shut down")
            run.release()
        await self._all_ended()

    async def _all_ended(self) -> None:
        while self._runs:
            await next(iter(self._runs.values())).ended.wait()

    def _begin(self, call: CallTool) -> ActiveCall:
        if len(self._runs) >= self._most:
            raise Refusal(BUSY, "This tools worker has as many calls as it takes. Ask again later.")
        run = self._runs[call.call] = ActiveCall(call, stopped=self._early.pop(call.call, None))
        self._tasks.start_soon(self._carry_out, run)
        return run

    async def _carry_out(self, run: ActiveCall) -> None:
        try:
            run.outcome = await self._work(run)
        except Exception as error:  # a fault of ours must reach one caller, not the whole worker
            sentence = f"{run.call.name} could not be carried out."
            run.outcome = incident_outcome(run.call.call, sentence, error)
        finally:
            del self._runs[run.call.call]
            run.ended.set()
            run.news.set()


async def _heartbeats(
    run: ActiveCall, event_of: Callable[[ActiveCall], anyio.Event]
) -> AsyncIterator[ToolProgress]:
    """A sign of life each second, until the event, which an answer may replace meanwhile."""
    while not event_of(run).is_set():
        with anyio.move_on_after(PROGRESS_SECONDS):
            await event_of(run).wait()
            return
        yield ToolProgress(call=run.call.call, note=run.note)


def _call_identity(call: CallTool) -> tuple[Any, ...]:
    """What two requests of one call have in common. An outcome is told to nobody else."""
    return call.block, call.conversation, call.name, call.arguments
