"""The active calls of this worker. All requests with one key share one run. No bus subscriptions.

A call outlives the request that started it. Another request with the same key joins the active call, or gets the
outcome from the ledger.
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

from trunkline.contracts.conversations.messages import Attachment
from trunkline.contracts.tools.messages import (
    BUSY,
    CallTool,
    QuestionAnswer,
    ToolOutcome,
    ToolProgress,
    ToolReply,
)
from trunkline.workers.tools.error_outcomes import encodable_text, incident_outcome
from trunkline.workers.tools.live_output import LiveOutput
from trunkline_bus import Refusal

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 1.0

OUTPUT_SECONDS = 0.5
"""The shortest pause in seconds between two messages with live output."""

OUTPUT_STEP = 50_000
"""After each so many characters of live output of a call, the pause grows by ``OUTPUT_SECONDS``. The feed keeps what
was sent, so a call that prints without end must not fill it.
"""

MAX_EARLY_STOPS = 4096
"""Largest number of stops that are kept for calls that have not arrived. A call follows its stop within seconds."""


@dataclass(eq=False, slots=True)
class ActiveCall:
    """One active call. ``note`` is its line of progress, ``output`` the live output of its programs, ``stopped`` the
    reason why it was stopped.

    ``attempt`` is set while this worker runs the call, ``waiting`` while it waits for another worker that runs it. A
    call that ends without an outcome was handed back, and the caller sends it to another worker. ``resumed``: another
    worker began the call. ``is_remote``: the call runs on another host, and continues there when this worker ends.
    ``tool`` and ``arguments`` are the call after aliases are resolved. ``loads`` names tools to show to the model.
    ``derived``: the result repeats memory's content. ``files`` are given to the person.
    """

    call: CallTool
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    output: LiveOutput = field(default_factory=LiveOutput)
    stopped: str | None = None
    outcome: ToolOutcome | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)
    question: ToolOutcome | None = None
    """The question that the call asks a person, while it waits for the answer."""
    news: anyio.Event = field(default_factory=anyio.Event)
    """Set when there is something to send to the caller: a question, or the end of the call."""
    limit: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Ends the tool at its time limit."""
    attempt: anyio.CancelScope | None = None
    waiting: anyio.CancelScope | None = None
    resumed: bool = False
    is_remote: bool = False
    loads: tuple[str, ...] = ()
    derived: bool = False
    files: tuple[Attachment, ...] = ()
    handed_back: bool = False
    question_lock: anyio.Lock = field(default_factory=anyio.Lock)
    """Locked while the call asks one question: the caller learns of one question at a time."""
    unanswered: int = 0
    """The number of questions that have no answer yet; the tool may ask them again."""
    _answered: anyio.Event = field(default_factory=anyio.Event)

    def report(self, note: str) -> None:
        """Set the line of progress that the next heartbeat carries. May be called from any thread."""
        self.note = encodable_text(str(note)[:500])

    def load(self, names: Sequence[str]) -> None:
        """Show these tools to the model if the call succeeds. May be called from any thread."""
        self.loads = (*self.loads, *(encodable_text(str(name)) for name in names))

    def add_file(self, file: Attachment) -> None:
        """Give a file to the person if the call succeeds. A file that is given twice counts once."""
        self.files = tuple(dict.fromkeys((*self.files, file)))

    def mark_derived(self) -> None:
        """Mark the result as a repetition of memory's content. May be called from any thread."""
        self.derived = True

    def stop(self, why: str) -> None:
        """Cancel the part of the call that runs here; its records are still written. A part on another host
        is awaited."""
        if self.stopped is None:
            self.stopped = why
            if self.attempt is not None:
                self.attempt.cancel()

    def answer_to(self, question: str) -> QuestionAnswer | None:
        """Return a person's answer to the question with this hash, or None."""
        return next((answer for answer in self.call.answers if answer.question == question), None)

    async def suspend(self, question: ToolOutcome) -> None:
        """End the call here, to be run again with an answer. Does not return."""
        self.question = question
        if self.attempt is not None:
            self.attempt.cancel()
        await anyio.sleep_forever()

    async def wait_for_answer(self, question: ToolOutcome) -> QuestionAnswer:
        """Report the question to the caller, and wait until the call is sent again with the answer."""
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
        """Add answers that arrived meanwhile."""
        if len(answers) > len(self.call.answers):
            self.call = msgspec.structs.replace(self.call, answers=answers)
            self.question, self.news = None, anyio.Event()
            self._answered.set()
            self._answered = anyio.Event()

    @contextmanager
    def pause_timeout(self) -> Iterator[None]:
        """Suspend the tool's time limit within the context."""
        remaining, self.limit.deadline = self.limit.deadline - anyio.current_time(), math.inf
        try:
            yield
        finally:
            self.limit.deadline = anyio.current_time() + remaining

    def release(self) -> None:
        """Stop waiting for the outcome of another worker or another host."""
        if self.is_remote and self.attempt is not None:
            self.handed_back = True
            self.attempt.cancel()
        if self.waiting is not None:
            self.waiting.cancel()


CallHandler = Callable[[ActiveCall], Awaitable[ToolOutcome | None]]
"""Executes a call; returns None when the call is handed back."""


class CallRegistry:
    """Runs calls in ``tasks`` through ``work``, at most ``most`` concurrently."""

    def __init__(self, tasks: TaskGroup, work: CallHandler, most: int) -> None:
        self._tasks = tasks
        self._work = work
        self._most = most
        self._runs: dict[str, ActiveCall] = {}
        self._early_stops: dict[str, str] = {}
        """The reasons of stops whose calls are not active here. A stop is not stored on the bus, and may arrive
        before its call."""

    async def call(self, call: CallTool) -> AsyncIterator[ToolReply]:
        """Start or join the call; yield a heartbeat each second, then its outcome or its question to a
        person.

        Raises:
          Refusal: the same key is active with another tool, other arguments or another conversation; or this worker
            has reached its limit of calls (``busy``).
        """
        while (
            (run := self._joined(call)) is not None
            and run.call.approved is None
            and call.approved is not None
        ):
            # A run without the approval is active. Wait for its end: its question must not be returned to this request.
            async for heartbeat in _heartbeats(run, attrgetter("ended")):
                yield heartbeat
            if run.outcome is not None and run.outcome.status != "approval":
                yield run.outcome
                return
        run = run or self._begin(call)
        run.add_answers(call.answers)
        async for heartbeat in _heartbeats(run, attrgetter("news")):
            yield heartbeat
        reply = run.outcome or run.question
        if reply is not None:
            yield reply

    def _joined(self, call: CallTool) -> ActiveCall | None:
        """Return the active run of this call, or None. Raises Refusal when the key belongs to another
        call."""
        run = self._runs.get(call.call)
        if run is not None and _call_identity(run.call) != _call_identity(call):
            raise Refusal(
                "conflict",
                f"The call {call.call} is active with another tool, other arguments or in another conversation.",
            )
        return run

    def has(self, key: str) -> bool:
        """Report whether a call is active here."""
        return key in self._runs

    def stop(self, key: str, why: str) -> None:
        """Stop a call that is active here or arrives later."""
        run = self._runs.get(key)
        if run is not None:
            run.stop(why)
            return
        self._early_stops[key] = why
        if len(self._early_stops) > MAX_EARLY_STOPS:
            forgotten = next(iter(self._early_stops))
            del self._early_stops[forgotten]
            log.warning(
                "the stop of call %s is dropped: too many stops arrived before their calls", forgotten
            )

    def stop_all(self, why: str) -> None:
        """Stop every active call."""
        for run in list(self._runs.values()):
            run.stop(why)

    async def drain(self, seconds: float) -> None:
        """Wait until no call is active; after ``seconds`` stop the rest and record the outcomes."""
        with anyio.move_on_after(seconds):
            await self._all_ended()
        for run in list(self._runs.values()):
            if not run.is_remote:
                run.stop("the tools worker was shut down")
            run.release()
        await self._all_ended()

    async def _all_ended(self) -> None:
        while self._runs:
            await next(iter(self._runs.values())).ended.wait()

    def _begin(self, call: CallTool) -> ActiveCall:
        if len(self._runs) >= self._most:
            raise Refusal(BUSY, "This tools worker has reached its limit of calls. Try again later.")
        run = self._runs[call.call] = ActiveCall(call, stopped=self._early_stops.pop(call.call, None))
        self._tasks.start_soon(self._carry_out, run)
        return run

    async def _carry_out(self, run: ActiveCall) -> None:
        try:
            run.outcome = await self._work(run)
        except Exception as error:  # an internal error must affect one caller, not the whole worker
            sentence = f"{run.call.name} could not be carried out."
            run.outcome = incident_outcome(run.call.call, sentence, error)
        finally:
            del self._runs[run.call.call]
            run.ended.set()
            run.news.set()


async def _heartbeats(
    run: ActiveCall, event_of: Callable[[ActiveCall], anyio.Event]
) -> AsyncIterator[ToolProgress]:
    """Yield a heartbeat each second until the event is set, or sooner when a program has printed something. An answer
    may replace the event meanwhile.
    """
    shown, sent = 0, 0
    output_due = anyio.current_time()
    due = output_due + PROGRESS_SECONDS
    while not event_of(run).is_set():
        with anyio.move_on_after(OUTPUT_SECONDS if run.output.begun else PROGRESS_SECONDS):
            await event_of(run).wait()
            return
        now = anyio.current_time()
        offset, output = run.output.after(shown) if now >= output_due else (0, "")
        if not output and now < due:
            continue
        yield ToolProgress(call=run.call.call, note=run.note, offset=offset if output else 0, output=output)
        due = now + PROGRESS_SECONDS
        if output:
            shown, sent = offset + len(output), sent + len(output)
            output_due = now + OUTPUT_SECONDS * (sent // OUTPUT_STEP)


def _call_identity(call: CallTool) -> tuple[Any, ...]:
    """Return the fields that requests of one call have in common. The outcome is returned to no other
    request."""
    return call.block, call.conversation, call.name, call.arguments
