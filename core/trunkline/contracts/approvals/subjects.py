"""The topics of approvals: their state, their timers, and the approvals that are due."""

from trunkline.contracts.approvals.messages import Approval, ApprovalDue
from trunkline.contracts.streams import APPROVAL_STREAM, TIMER_STREAM
from trunkline_bus import Subject, Topic

APPROVAL: Topic[Approval] = Topic(
    name="approvals",
    subject=Subject("trunkline.evt.approval.{approval}"),
    payload=Approval,
    stream=APPROVAL_STREAM,
    doc="A call waits for a person's decision, or has one. The stream contains the last state of each approval.",
)
APPROVAL_TIMER: Topic[ApprovalDue] = Topic(
    name="approval timers",
    subject=Subject("trunkline.turn.timer.{approval}.{what}"),
    payload=ApprovalDue,
    stream=TIMER_STREAM,
    doc="A message schedule: the server publishes the reminder and the deadline of an approval at their times.",
)
APPROVAL_DUE: Topic[ApprovalDue] = Topic(
    name="approvals due",
    subject=Subject("trunkline.turn.due.{approval}.{what}"),
    payload=ApprovalDue,
    stream=TIMER_STREAM,
    doc="The reminder or the deadline of an approval is due. Durable until a gateway has processed it.",
)
