"""The audit log: entries of who decided and who changed what."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.contracts.audit.messages import AuditEntry as AuditEntry
    from trunkline.contracts.audit.subjects import AUDIT as AUDIT
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
