"""Questions of a running call to a person: waits for the answer and returns it to the tool.

A repeatable call ends and runs again with the answer, so no worker waits for days. A call that must not run twice
waits in its worker for a limited time. The monitor and the channels decide whom to ask, and how.
"""

import json
from collections.abc import Sequence

import anyio
import msgspec

from trunkline._util.text import printable
from trunkline.contracts.approvals.messages import DECIDED_BY_DEADLINE, describe_decider
from trunkline.contracts.approvals.preview import preview
from trunkline.contracts.channels.subjects import TELL_OWNER
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.gateway.messages import TellOwner
from trunkline.contracts.sentences.sentences import ENGLISH_SENTENCES
from trunkline.contracts.tools.messages import QuestionAnswer, ToolOutcome, ToolSpec
from trunkline.contracts.tools.person import Person
from trunkline.errors import NoAnswer, OutcomeUnknown, ToolError, error_kind_for_code
from trunkline.workers.tools.call_registry import ActiveCall
from trunkline_bus import Bus, BusError, NoResponders, RemoteFault, SubjectError, key_of

TELL_SECONDS, ABSENT_SECONDS = 20.0, 2.0
"""Seconds that a channel may take to deliver a message, and seconds that a restarting channel may be absent.
A model may name any channel, and most names belong to none."""

MAX_QUESTIONS = 20
"""Largest number of questions of one call: each question parks its turn, and a tool could ask forever."""

MAX_OPTIONS, MAX_OPTION_CHARS = 20, 200
"""Largest number of proposed answers, and of characters of each."""


class CallPerson(Person):
    """The person of one call. ``answer_wait`` is how many seconds a call that must not run twice waits for an
    answer. ``channels`` are those that may tell the person.
    """

    def __init__(
        self, bus: Bus, run: ActiveCall, spec: ToolSpec, answer_wait: float, channels: Sequence[str]
    ) -> None:
        self._bus = bus
        self._run = run
        self._spec = spec
        self._answer_wait = answer_wait
        self._channels = channels

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """See ``Person.ask``."""
        run, outcome = self._run, _question_outcome(self._run, self._spec, question, tuple(options))
        async with run.question_lock:  # concurrent questions of one call are asked one after the other
            answer = run.answer_to(outcome.call_hash)
            if answer is None and len(run.call.answers) + run.unanswered >= MAX_QUESTIONS:
                raise NoAnswer(
                    f"This call has asked {MAX_QUESTIONS} times, which is the limit. Nobody was asked again."
                )
            if answer is None and self._spec.repeatable:
                await run.suspend(outcome)
            if answer is None:
                asked = msgspec.structs.replace(outcome, within=self._answer_wait)
                with run.pause_timeout(), anyio.move_on_after(self._answer_wait):
                    answer = await run.wait_for_answer(asked)
        return _answer_text(answer)

    async def tell(self, channel: str, text: str) -> None:
        """See ``Person.tell``."""
        if not channel:
            return await self._tell_by_preference(text)
        try:
            TELL_OWNER.subject.format(channel=channel)
        except SubjectError as error:
            raise ToolError(
                f"{channel!r} is not the name of a channel. Nothing was sent.", kind="invalid_arguments"
            ) from error
        message = TellOwner(block=self._run.call.block, text=text)
        try:
            await self._bus.call(
                TELL_OWNER, message, timeout=TELL_SECONDS, absent=ABSENT_SECONDS, channel=channel
            )
        except NoResponders as error:
            raise ToolError(
                f"No channel {channel} takes messages now. Nothing was sent.", kind="unavailable"
            ) from error
        except RemoteFault as fault:
            raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault
        except BusError as error:
            raise OutcomeUnknown(
                f"The channel {channel} did not confirm the delivery to the owner."
            ) from error

    async def _tell_by_preference(self, text: str) -> None:
        """Hand the message to every channel. Each decides by the person's preferences whether and when it tells it."""
        call = self._run.call
        message = TellOwner(
            block=call.block, text=text, notice=key_of("tell", call.turn, call.call), at=utc_now()
        )
        accepted = 0
        for name in self._channels:
            try:
                await self._bus.call(
                    TELL_OWNER, message, timeout=TELL_SECONDS, absent=ABSENT_SECONDS, channel=name
                )
                accepted += 1
            except NoResponders:
                continue  # a channel that does not run
            except BusError as error:
                raise OutcomeUnknown(
                    f"The channel {name} did not confirm that it has the message."
                ) from error
        if not accepted:
            raise ToolError("No channel takes messages now. Nothing was sent.", kind="unavailable")


def _answer_text(answer: QuestionAnswer | None) -> str:
    if answer is None or answer.by == DECIDED_BY_DEADLINE:
        raise NoAnswer(
            "Nobody answered in time. Do not repeat the question; continue without the answer, or say what is missing."
        )
    if answer.text is None:
        raise NoAnswer(
            f"The question was left unanswered by {describe_decider(answer.by)}. Do not ask it again."
        )
    return answer.text


def _question_outcome(
    run: ActiveCall, spec: ToolSpec, question: str, options: tuple[str, ...]
) -> ToolOutcome:
    """Return the outcome that sends the question to the monitor. Its hash differs from the hash of every call, so an
    answer never approves a call.
    """
    text, proposed = (
        printable(question).strip(),
        tuple(" ".join(printable(option).split()) for option in options),
    )
    if not text:
        raise ToolError("The question is empty. Nobody was asked.", kind="invalid_arguments")
    if len(proposed) > MAX_OPTIONS or any(not 0 < len(option) <= MAX_OPTION_CHARS for option in proposed):
        raise ToolError(
            f"Propose {MAX_OPTIONS} answers at most, each of 1 to {MAX_OPTION_CHARS} characters. Nobody was asked.",
            kind="invalid_arguments",
        )
    shown = preview("question", text)
    if shown.left_out:
        raise ToolError(
            f"The question is {shown.left_out} characters too long to be read. Nobody was asked.",
            kind="too_large",
        )
    return ToolOutcome(
        call=run.call.call,
        status="approval",
        call_hash=key_of("question", run.call.call, json.dumps([text, *proposed])),
        question=ENGLISH_SENTENCES("ask.question", block=run.call.block, tool=spec.name),
        detail=msgspec.structs.replace(shown, options=proposed, effect=spec.effect),
    )
