"""The schemas of the state of the platform: audit log, stop, health and tickets for WebSockets."""

from typing import Literal

from trunkline.contracts.audit.messages import AuditRecord
from trunkline.workers.gateway.http.schemas.schema_base import Out


class AuditItem(Out, AuditRecord, frozen=True, kw_only=True):
    """An entry of the audit log. The fields have the meaning of those in ``trunkline audit --json``."""


class AuditPage(Out, frozen=True, kw_only=True):
    """A page of the audit log, the newest entry first. ``total`` is the number of entries that match."""

    entries: tuple[AuditItem, ...]
    total: int


class PanicState(Out, frozen=True, kw_only=True):
    """Reports whether everything is stopped, since when (ISO 8601) and by whom."""

    engaged: bool
    at: str = ""
    by: str = ""


class PanicReport(Out, frozen=True, kw_only=True):
    """The stop, the kinds of workers that have ended all that they ran, and the workers that have not answered."""

    engaged: bool
    stopped: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


class TicketIssued(Out, frozen=True, kw_only=True):
    """A ticket that opens one WebSocket at ``/ws`` within ``seconds``. ``protocols`` are the sub-protocols to offer in
    the handshake, for ``new WebSocket(url, protocols)``.
    """

    ticket: str
    seconds: float
    protocols: tuple[str, ...]


class Health(Out, frozen=True, kw_only=True):
    """The process is alive."""

    status: Literal["ok"]


class Readiness(Out, frozen=True, kw_only=True):
    """The readiness: whether messages are accepted, answered and stored.

    ``checks`` maps each part to its state: ``ok``, ``missing``, or ``failing`` when the part runs but cannot work, such
    as memory with a full disk.
    """

    status: Literal["ready", "not_ready"]
    checks: dict[str, str]


class PluginRequests(Out, frozen=True, kw_only=True):
    """The requests of a plugin in its manifest: ``effects`` of its tools, hosts of the ``network``, ``files`` outside
    of workspaces and memory, ``secrets``, and ``programs``. The platform enforces the effects. It does not enforce the
    rest unless the plugin runs in a process of its own (``isolation``).
    """

    effects: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    isolation: Literal["none", "process"] = "none"


class PluginItem(Out, frozen=True, kw_only=True):
    """A plugin. ``owner`` is its distribution, ``name`` its entry point. ``reason`` says why it is not loaded, ``hint``
    what to do. ``hooks`` are those that it implements. Without ``asks`` it declares nothing, so nothing bounds it.
    """

    owner: str
    name: str
    version: str
    status: Literal["loaded", "failed", "refused", "disabled", "quarantined", "isolated"]
    reason: str = ""
    hint: str = ""
    hooks: tuple[str, ...] = ()
    asks: PluginRequests | None = None


class PluginProblem(Out, frozen=True, kw_only=True):
    """A hook of a loaded plugin that cannot be used. The rest of the plugin can."""

    owner: str
    hook: str
    reason: str


class PluginItems(Out, frozen=True, kw_only=True):
    """The plugins, the problems that the gateway has found so far, and the required plugins that are not loaded."""

    plugins: tuple[PluginItem, ...]
    problems: tuple[PluginProblem, ...] = ()
    missing: tuple[str, ...] = ()
