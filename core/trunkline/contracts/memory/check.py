"""The messages of the check of memory for damage."""

from typing import Literal

import msgspec

from trunkline.contracts.memory.operation import query
from trunkline_bus import Payload


class CheckMemory(Payload, frozen=True, kw_only=True, tag="memory.check.v1"):
    """Check the memory root for damage. With ``repair`` damage is repaired; without it nothing is changed."""

    repair: bool = True


class MemoryFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check. ``repaired`` means that damage was found and repaired. ``id`` identifies the check and
    does not change between versions.
    """

    id: str
    status: Literal["ok", "repaired", "warning", "error"]
    summary: str
    hint: str = ""


class MemoryCheckReport(Payload, frozen=True, kw_only=True, tag="memory.check_report.v1"):
    """The reply to ``CheckMemory``: the findings, in the order of the checks."""

    findings: tuple[MemoryFinding, ...] = ()


MEMORY_CHECK = query(
    "check",
    CheckMemory,
    MemoryCheckReport,
    "Check memory for damage, and repair it.",
    ("operator",),
    concurrency=1,
)
