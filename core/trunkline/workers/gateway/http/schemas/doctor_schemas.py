"""The schemas of the checks of an installation."""

from typing import Literal

from trunkline.workers.gateway.http.schemas.schema_base import Out


class DoctorCheck(Out, frozen=True, kw_only=True):
    """The result of one check. ``id`` is stable, ``hint`` says what to do, and ``owner`` is the plugin that provides
    the check, "" for the platform.
    """

    id: str
    status: Literal["ok", "warning", "error", "skipped"]
    summary: str
    hint: str = ""
    owner: str = ""


class OpenPort(Out, frozen=True, kw_only=True):
    """An open port of this home: its address, its purpose, and the credential that a client needs."""

    address: str
    purpose: str
    credential: str


class DoctorReport(Out, frozen=True, kw_only=True):
    """The checks, ``ok`` if none reports an error, and the open ports."""

    ok: bool
    checks: tuple[DoctorCheck, ...]
    listeners: tuple[OpenPort, ...] = ()
