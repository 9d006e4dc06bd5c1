"""Dead letters: messages that no worker could read or handle. Lists them and sends inbox messages again.

Only inbox messages are sent again. An inbox message left its queue when it became a dead letter, and a second delivery
is harmless, because a turn runs once, by its id. ``REFUSAL_REASONS`` and ``PREFIX_REASONS`` give the reasons for
all other messages.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from trunkline._util.text import printable
from trunkline.contracts.agents.subjects import TASK_DUE, TASK_TIMER
from trunkline.contracts.approvals.subjects import APPROVAL, APPROVAL_DUE, APPROVAL_TIMER
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.costs.subjects import BUDGET_EVENT, COST, OPENED_REQUEST
from trunkline.contracts.schedules.subjects import SCHEDULE_DUE, SCHEDULE_TIMER
from trunkline.contracts.turns.subjects import EFFECT, FEED, INBOX, JOURNAL, MOVED_INBOX, TURN_FACT
from trunkline.contracts.workers.subjects import DEAD_LETTER_TOPIC, SPANS
from trunkline.errors import TrunklineError
from trunkline_bus import Bus, DeadLetter, DecodeError, Envelope, Subject, SubjectError
from trunkline_bus.connection.claim_check import CLAIM_HEADER
from trunkline_bus.streams.admin import raw_history, resend

REFUSAL_REASONS: Mapping[str, str] = {
    MOVED_INBOX.subject.template: "it is in the inbox, and is sent again as the inbox message",
    JOURNAL.subject.template: "a journal is only appended to, by the turn's owner; a late record would break the turn",
    EFFECT.subject.template: "the ledger records when a tool did what; a late record would be false",
    FEED.subject.template: "a feed is read by position, and readers complete it from the journal",
    TURN_FACT.subject.template: "its stream has the fact; sent again, every other reader would count it twice",
    APPROVAL.subject.template: "channels read the question in the journal; sent late, it would be asked again",
    APPROVAL_TIMER.subject.template: "the server keeps the time; sent again, a question would end at another time",
    APPROVAL_DUE.subject.template: "a gateway acts on it when it is due; a question that is open can still be answered",
    SCHEDULE_TIMER.subject.template: "the gateways arm each schedule again from its file",
    SCHEDULE_DUE.subject.template: "the gateways arm each schedule again, and report the times that were missed",
    TASK_TIMER.subject.template: "the server keeps the time; sent again, a task would end at another time",
    TASK_DUE.subject.template: "a gateway acts on it when it is due; a task that runs can still be cancelled",
    AUDIT.subject.template: "its stream has the line; sent again, it would be recorded twice",
    OPENED_REQUEST.subject.template: "a monitor settles it at its next start; a late one would be charged again",
    COST.subject.template: "its stream has the entry; sent again, the request would be charged twice",
    BUDGET_EVENT.subject.template: "its stream has the event; sent again, its owner would be told twice",
    SPANS.subject.template: "its stream has the spans; sent again, they would be shown twice",
}
"""The reasons why messages of stored topics are not sent again, by the template of their subject."""

PREFIX_REASONS: Mapping[str, str] = {
    "trunkline.cmd.": "it is a request: its caller received an error, and has repeated the request or given up",
    "trunkline.ctl.": "a control message applies only at the moment when it is sent",
    "trunkline.x.": "it belongs to a plugin, and only the plugin can decide whether it may arrive twice",
    "trunkline.evt.": "it is an event that nothing stores; a late reader requests the state instead",
}
"""The reasons why messages of other topics are not sent again, by the prefix of their subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDeadLetter:
    """A dead letter in its stream. ``id`` is its sequence number, ``time`` the time when it was stored (UTC),
    ``source`` the worker that stored it."""

    id: int
    time: datetime
    source: str
    letter: DeadLetter

    @property
    def body(self) -> bytes:
        """The message's bytes, as far as they were stored."""
        try:
            return base64.b64decode(self.letter.data, validate=True)
        except binascii.Error:
            return b""

    def readable_body(self) -> tuple[str, str]:
        """Return the format of the body (``json``, ``text`` or ``bytes``), and the body as text without control
        characters that could change a terminal."""
        body = self.body
        try:
            return "json", printable(msgspec.json.format(body, indent=2).decode())
        except (msgspec.MsgspecError, UnicodeDecodeError):
            pass
        try:
            return "text", printable(body.decode())
        except UnicodeDecodeError:
            return "bytes", repr(body)

    @property
    def is_complete(self) -> bool:
        """Report whether all bytes were stored."""
        return len(self.body) == self.letter.size


class EnvelopeHead(msgspec.Struct):
    """The part of an envelope that shows where its body is."""

    id: str
    data: msgspec.Raw


async def list_dead_letters(bus: Bus) -> list[StoredDeadLetter]:
    """Return all dead letters, oldest first."""
    decoder = msgspec.json.Decoder(Envelope[DeadLetter])
    found = []
    async for record in raw_history(bus, DEAD_LETTER_TOPIC):
        try:
            envelope = decoder.decode(record.data)
            source, letter = envelope.source, envelope.data
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            source, letter = "", _unreadable(record.subject, record.data, str(error))
        found.append(StoredDeadLetter(id=record.seq, time=record.time, source=source, letter=letter))
    return found


async def find_dead_letters(
    bus: Bus, ids: tuple[int, ...], *, all_of_them: bool = False
) -> list[StoredDeadLetter]:
    """Return the dead letters with these ids. Raises TrunklineError for an unknown id."""
    existing = await list_dead_letters(bus)
    if all_of_them:
        return existing
    by_id = {one.id: one for one in existing}
    for wanted in ids:
        if wanted not in by_id:
            raise TrunklineError(
                f"There is no dead letter {wanted}.", hint='See "trunkline dead-letters list".'
            )
    return [by_id[wanted] for wanted in ids]


async def retry(bus: Bus, buried: StoredDeadLetter) -> int:
    """Send the message again unchanged, then delete the dead letter. Return its new number in the inbox.

    A message that is sent twice is stored once. Raises TrunklineError with the reason when the message may not be sent
    again.
    """
    keys = await check_retriable(bus, buried)
    ack = await resend(
        bus, INBOX, buried.body, msg_id=f"dead-{buried.id}", headers=_claim(buried.body), **keys
    )
    await bus.delete(DEAD_LETTER_TOPIC, buried.id)
    return ack.seq


async def check_retriable(bus: Bus, buried: StoredDeadLetter) -> dict[str, str]:
    """Return the keys of the inbox subject of a message that may be sent again. Raises TrunklineError when the message
    may not be sent again."""
    subject = buried.letter.subject
    keys = _inbox_keys(subject)
    if keys is None:
        raise _refusal(buried, refusal_reason(subject))
    if not buried.is_complete:
        kept = len(buried.body)
        raise _refusal(buried, f"only {kept} of its {buried.letter.size} bytes were kept")
    try:
        await bus.inbound.open(INBOX.payload, buried.body, _claim(buried.body))
    except DecodeError as error:
        raise _refusal(
            buried, f"this version cannot read it either ({error.reason}: {error.detail})"
        ) from error
    return keys


def refusal_reason(subject: str) -> str:
    """Return the reason why a message with this subject, which is not an inbox subject, is not sent again."""
    of_topic = (why for template, why in REFUSAL_REASONS.items() if _matches(subject, Subject(template)))
    of_prefix = (why for prefix, why in PREFIX_REASONS.items() if subject.startswith(prefix))
    return next(of_topic, None) or next(of_prefix, "nobody reads its subject")


def _matches(subject: str, template: Subject) -> bool:
    try:
        template.parse(subject)
    except SubjectError:
        return False
    return True


def _inbox_keys(subject: str) -> dict[str, str] | None:
    for template in (INBOX.stored_subject, INBOX.subject):
        try:
            return {"conversation": template.parse(subject)["conversation"]}
        except SubjectError:
            continue
    return None


def _claim(body: bytes) -> dict[str, str]:
    """Return the claim header of a message whose body is in the object store, named like the envelope."""
    try:
        head = msgspec.json.decode(body, type=EnvelopeHead)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return {CLAIM_HEADER: head.id} if bytes(head.data) == b"null" else {}


def _refusal(buried: StoredDeadLetter, why: str) -> TrunklineError:
    return TrunklineError(
        f"Dead letter {buried.id} is not sent again: {why}.",
        hint=f'To show it: "trunkline dead-letters show {buried.id}".',
    )


def _unreadable(subject: str, data: bytes, detail: str) -> DeadLetter:
    return DeadLetter(
        subject=subject,
        reason="garbage",
        detail=f"not a dead letter itself: {detail}",
        data=base64.b64encode(data).decode(),
        size=len(data),
    )
