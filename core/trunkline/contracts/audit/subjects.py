"""The subject of the audit log, which records decisions about calls and how the calls ended."""

from trunkline.contracts.audit.messages import AuditEntry
from trunkline.contracts.streams import AUDIT_STREAM
from trunkline_bus import Subject, Topic

AUDIT: Topic[AuditEntry] = Topic(
    name="audit", subject=Subject("trunkline.evt.audit.{block}.noted"), payload=AuditEntry, stream=AUDIT_STREAM,
    doc="Decisions about tool calls, and how the calls ended. The memory worker writes them into memory.",
)  # fmt: skip
