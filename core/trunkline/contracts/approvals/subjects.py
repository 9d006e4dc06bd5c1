"""The topics of approvals: their state, and the end of their time."""

from trunkline.contracts.approvals.messages import (
    Approval,
    ApprovalDue,
    ApprovalList,
    ApprovalView,
    ForgetGrant,
    GetApproval,
    GrantList,
    ListApprovals,
    ListGrants,
)
from trunkline.contracts.gateway.messages import CommandSucceeded
from trunkline.contracts.streams import APPROVAL_STREAM, TIMER_STREAM
from trunkline_bus import Endpoint, Subject, Topic

APPROVAL: Topic[Approval] = Topic(
    name="approvals",
    subject=Subject("trunkline.evt.approval.{approval}"),
    payload=Approval,
    stream=APPROVAL_STREAM,
    doc="A call waits for a person's decision, or was decided. The stream has the last word on each.",
)
APPROVAL_TIMER: Topic[ApprovalDue] = Topic(
    name="approval timers",
    subject=Subject("trunkline.turn.timer.{approval}.{what}"),
    payload=ApprovalDue,
    stream=TIMER_STREAM,
    doc="What the server shall say about an approval at its time: a message schedule.",
)
APPROVAL_DUE: Topic[ApprovalDue] = Topic(
    name="approvals due",
    subject=Subject("trunkline.turn.due.{approval}.{what}"),
    payload=ApprovalDue,
    stream=TIMER_STREAM,
    doc="The time of an approval's reminder, or of its end. Durable until a gateway has acted on it.",
)
LIST_APPROVALS = Endpoint(
    "gateway.approvals", Subject("trunkline.cmd.gateway.{channel}.approvals.list"), ListApprovals, ApprovalList,
    root=False, doc="The approvals that wait for a decision.",
)  # fmt: skip
GET_APPROVAL = Endpoint(
    "gateway.approval", Subject("trunkline.cmd.gateway.{channel}.approvals.show"), GetApproval, ApprovalView,
    root=False, doc="One approval, with the arguments of its call.",
)  # fmt: skip
LIST_GRANTS = Endpoint(
    "gateway.grants", Subject("trunkline.cmd.gateway.{channel}.approvals.granted"), ListGrants, GrantList,
    root=False, doc="What was allowed for longer than one call.",
)  # fmt: skip
FORGET_GRANT = Endpoint(
    "gateway.forget-grant", Subject("trunkline.cmd.gateway.{channel}.approvals.forget"), ForgetGrant, CommandSucceeded,
    doc="Take such a permission back.",
)  # fmt: skip
