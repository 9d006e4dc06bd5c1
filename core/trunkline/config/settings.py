"""The platform's settings, section by section, with their defaults. Plain data without I/O.

Relative paths start at the home folder. Durations are in seconds, sizes in bytes. The settings of a plugin are in its
own table: ``[plugins.X]``, ``[adapters.X]`` or ``[channels.X]``.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from trunkline._util.secrets import SECRET_NAMES
from trunkline.config.secret import Secret
from trunkline.contracts.blocks.paths import BLOCK_NAME
from trunkline.contracts.models.prices import Price
from trunkline.contracts.policies.messages import PermissionTable
from trunkline.contracts.retention import Retention
from trunkline.policy import DEFAULT_TABLE

Seconds = Annotated[float, msgspec.Meta(gt=0)]
NonNegativeSeconds = Annotated[float, msgspec.Meta(ge=0)]
PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
HostName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9.-]{1,253}$")]
BlockName = Annotated[str, msgspec.Meta(pattern=f"^{BLOCK_NAME}$")]


class RuntimeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[runtime]``: exactly the four fields of the runtime configuration."""

    memory_root: Path = Path("memory")
    provider_adapter: str = "auto"
    auth_mode: Literal["local"] = "local"
    tool_sources: tuple[Path, ...] = ()


class BusSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[bus]``: the connection to NATS. Without a ``url`` the embedded server is used.

    ``inbox_prefix`` is the first part of reply subjects; ``{user}`` is replaced by the user. Without
    ``manage_streams`` workers create no streams and use those that ``trunkline run streams`` creates.
    ``connect_timeout`` is how long a starting worker waits for NATS.

    ``sync_interval`` is when the embedded server flushes acknowledged data to disk: before the acknowledgement
    (``always``), or at most that many seconds later. ``feed_storage`` is the storage of the feed of turns.
    """

    url: str | None = None
    user: str | None = None
    password: Secret | None = None
    credentials_file: Path | None = None
    inbox_prefix: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]+(\{user\})?$")] = "_INBOX"
    manage_streams: bool = True
    connect_timeout: NonNegativeSeconds = 60.0
    replicas: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    sync_interval: Literal["always"] | Seconds = "always"
    feed_storage: Literal["file", "memory"] = "file"


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[gateway]``: the HTTP interface for people and programs. Port 0 means any free port.

    ``max_content`` is the largest number of bytes of a message. ``max_queued`` is the largest number of unanswered
    messages of one conversation, including the one that is being answered; further messages are refused.
    ``max_attachments`` is the largest number of files of one request, ``max_attachment_mb`` the largest size of one
    file, uploaded files included, and ``max_attachments_mb`` that of all files of a request together.
    ``header_timeout`` and ``body_timeout`` limit how long the header and the body of a request may take to arrive.
    ``allowed_hosts`` are further names of the gateway, such as that of a proxy. With ``tls_certificate`` and
    ``tls_key``, two PEM files, the gateway speaks TLS. Without them it listens on a loopback address only, unless
    ``behind_proxy`` says that a proxy with TLS is in front of it. ``max_sockets`` is the largest number
    of open WebSockets of one identity. The gateway pings each of them every ``ping_interval`` seconds, and closes one
    that does not answer within as long. ``metrics`` permits reading ``/metrics``: with the token (``token``), without
    it (``open``), or not at all (``off``).
    """

    host: str = "127.0.0.1"
    port: Port = 8420
    allowed_hosts: tuple[HostName, ...] = ()
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    max_content: PositiveInt = 1_000_000
    max_queued: PositiveInt = 200
    max_attachments: PositiveInt = 10
    max_attachment_mb: PositiveInt = 16
    max_attachments_mb: PositiveInt = 24
    header_timeout: Seconds = 10.0
    body_timeout: Seconds = 60.0
    max_sockets: PositiveInt = 200
    ping_interval: Seconds = 20.0
    default_block: BlockName = "main"
    metrics: Literal["token", "open", "off"] = "token"


class ApprovalsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[approvals]``: how long a call waits for a person's decision. Without a decision by then, the call is denied.

    ``deadline`` applies to turns for whose answer a person waits. ``background_deadline`` applies to turns in the
    background, such as runs of workflows. ``channel_deadlines`` applies to the turns of a channel, by the channel's
    name. ``remind_after_share`` is the share of that time after which people are reminded, above 0 and up to 1; with 1
    there is no reminder.
    """

    deadline: Seconds = 300.0
    background_deadline: Seconds = 86_400.0
    channel_deadlines: dict[str, Seconds] = {}
    remind_after_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.8


OLD_RESULTS = (("read_file", 500), ("search_files", 500), ("execute_command", 1_000), ("discover_tools", 0))
"""The tools whose old results are shortened, and the number of characters that remain."""


class MonitorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[monitor]``: the resident agents.

    ``model_idle_timeout`` is how long a model may be silent before its call fails. ``tool_idle_timeout`` is how long a
    tools worker may be silent before its call is sent again. ``max_answer`` is the largest answer of one model call.
    ``text_flush_seconds`` is how long text is collected before it is shown. ``concurrency`` is the largest number of
    concurrent turns, and ``background_concurrency`` is the largest number of background turns among them; one
    slot is always left to people unless there is only one. A background turn that has waited for ``background_wait``
    seconds waits like an interactive one and is not preempted.
    ``context_window`` is the number of tokens that a model accepts if neither
    ``[models.context_windows]`` nor the shipped list names the model. ``context_share`` is the share of the window
    that files and recall may fill; of a window that you did not set, at most ``context_window`` tokens count. A block
    with more than ``discovery_threshold`` tools sends the model at most that many and lets it find the others.
    ``old_results`` has the number of characters to which old results of tools are cut, by tool.

    ``max_tool_calls`` is the largest number of tool calls of one answer that are run; the others are refused with a
    message to the model. ``parallel_tool_calls`` is the largest number of concurrent calls of one turn. The number of
    steps of a turn is not limited.

    With ``engine`` the agent loop is also served directly, as ``POST /engine/chat`` on ``127.0.0.1:engine_port`` (0
    means any free port), for clients with the home's token.
    """

    engine: bool = False
    engine_port: Port = 8422
    bootstrap: str = "Read AGENT.md for your instructions."
    context_window: PositiveInt = 32_000
    context_share: Annotated[float, msgspec.Meta(gt=0, le=0.9)] = 0.2
    model_idle_timeout: Seconds = 120.0
    max_answer: PositiveInt = 4_000_000
    max_tool_calls: PositiveInt = 128
    parallel_tool_calls: PositiveInt = 16
    tool_idle_timeout: Seconds = 1.5
    text_flush_seconds: NonNegativeSeconds = 0.015
    discovery_threshold: Annotated[int, msgspec.Meta(ge=0)] = 12
    old_results: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = msgspec.field(
        default_factory=lambda: dict(OLD_RESULTS)
    )
    concurrency: PositiveInt = 256
    background_concurrency: PositiveInt = 192
    background_wait: NonNegativeSeconds = 120.0
    drain_timeout: NonNegativeSeconds = 20.0


class AgentsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[agents]``: agents that work for other agents.

    ``max_depth`` is how many agents may be below a person's turn, one below the other. ``max_running`` is the largest
    number of tasks that run at the same time for one turn of a person, whatever their depth. ``timeout`` is the longest
    time of a task, which includes the time in which it waits for a person.
    """

    max_depth: PositiveInt = 5
    max_running: PositiveInt = 16
    timeout: Seconds = 86_400.0


class ModelsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[models]``: the prices of models by ``adapter/model``, as in ``[models.prices."openai/gpt-4.1"]``, and by the
    same names the numbers of tokens that they accept (``context_windows``).

    These prices and windows have precedence over the list that Trunkline ships. A ``*`` in the name of a price matches
    any text. A name without ``*`` has precedence, then the longer name. The name of an adapter alone means its default
    model.
    """

    prices: dict[str, Price] = {}
    context_windows: dict[str, PositiveInt] = {}


class ToolsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[tools]``: ``workspaces`` contains one folder per block. ``timeout`` applies to tools that set none.
    ``answer_wait`` is how long a running call that must not run twice waits for a person's answer.

    Of the calls of one worker, ``concurrency`` run at the same time and ``backlog`` wait. The worker refuses further
    calls as busy, and the caller sends them again.

    A result of more than ``max_shown_result`` bytes is stored separately, and the model is shown its beginning and
    its end. At most ``max_stored_result`` bytes of a result are stored.
    """

    workspaces: Path = Path("workspaces")
    timeout: Seconds = 60.0
    drain_timeout: NonNegativeSeconds = 20.0
    answer_wait: Seconds = 300.0
    concurrency: PositiveInt = 64
    backlog: PositiveInt = 512
    max_shown_result: Annotated[int, msgspec.Meta(ge=1_000)] = 131_072
    max_stored_result: Annotated[int, msgspec.Meta(ge=1_000)] = 16_777_216


DEFAULT_STORE = "trunkline-git-store"
"""The plugin whose store is used when ``[memory] store`` names none."""


class MemorySettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[memory]``: ``commit_window`` is the longest time for which writes are collected into one commit. With
    ``fsync`` a commit is on disk before it is acknowledged.

    ``store`` names the plugin (its distribution) whose store is used for memory; the default is
    ``trunkline-git-store``. ``embedder`` names the component that converts texts to vectors for search by meaning: an
    embedder of a plugin, or a model adapter with its model (``openai/text-embedding-3-small``). ``redact`` are key
    names of secrets: the value after ``api_key=`` and similar keys is not stored.
    """

    commit_window: NonNegativeSeconds = 0.004
    fsync: bool = True
    store: str | None = None
    embedder: str | None = None
    redact: tuple[str, ...] = SECRET_NAMES


class WatchedFolder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder whose changed files are imported into memory, for all blocks or for one. With ``prune``, files that
    are deleted there are also deleted from memory.
    """

    folder: Path
    block: BlockName | None = None
    prune: bool = False


class DocumentsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[documents]``: ``read_timeout`` (seconds) and ``read_memory_mb`` (MiB) limit the reading of one file.

    ``conversation_days`` is how long unused documents of a conversation are kept. ``watch`` are the folders that the
    tools worker watches.
    """

    read_timeout: Seconds = 120.0
    read_memory_mb: Annotated[int, msgspec.Meta(ge=128)] = 1024
    conversation_days: NonNegativeSeconds = 30.0
    watch: tuple[WatchedFolder, ...] = ()


AuditDetail = Literal["minimal", "standard", "verbose"]


class AuditSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[audit]``: which parts of arguments and results of tools the audit log contains, besides actor, action and
    time.

    ``minimal``: none. ``standard``: the beginning of each argument. ``verbose``: arguments and results.
    """

    detail: AuditDetail = "standard"


TERMINAL = "terminal"
"""The channel that ``trunkline chat`` runs, and no worker."""


class ChannelsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[channels]``: which channels ``trunkline up`` and the channels worker run."""

    enabled: tuple[str, ...] = (TERMINAL,)

    @property
    def telling(self) -> tuple[str, ...]:
        """The channels that tell the owner of notices: all but the terminal, at which nobody may sit. Raises
        nothing.
        """
        return tuple(name for name in self.enabled if name != TERMINAL)


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[telemetry]``: ``capture_content`` records messages of people and models in traces; off by default."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    capture_content: bool = False
    traces: bool = True


class RemotesSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[remotes]``: remote hosts whose tools are used here. Without ``listen`` (``host:port``) no remote can
    connect.

    ``unreachable_timeout`` is how many seconds a call waits for its result while its host is unreachable.
    """

    listen: Annotated[str, msgspec.Meta(pattern=r"^(\[[0-9a-fA-F:]+\]|[^:\s]+):[0-9]{1,5}$")] | None = None
    unreachable_timeout: Seconds = 7_200.0


class PluginsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[plugins]``: disabled plugins, and plugins without which a worker refuses to start.

    ``import_timeout`` limits the import of one plugin. ``stall_timeout`` is how long a process may be blocked before
    it ends itself (0: no limit). ``max_crashes`` is the number of crashes within an hour after which a plugin is put
    into quarantine (0: no limit).
    """

    disabled: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    import_timeout: Seconds = 10.0
    stall_timeout: NonNegativeSeconds = 30.0
    max_crashes: Annotated[int, msgspec.Meta(ge=0)] = 3


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All sections of the platform."""

    runtime: RuntimeSettings = RuntimeSettings()
    bus: BusSection = BusSection()
    gateway: GatewaySettings = GatewaySettings()
    approvals: ApprovalsSettings = ApprovalsSettings()
    monitor: MonitorSettings = MonitorSettings()
    agents: AgentsSettings = AgentsSettings()
    models: ModelsSettings = ModelsSettings()
    tools: ToolsSettings = ToolsSettings()
    permissions: PermissionTable = DEFAULT_TABLE
    audit: AuditSettings = AuditSettings()
    memory: MemorySettings = MemorySettings()
    documents: DocumentsSettings = DocumentsSettings()
    channels: ChannelsSettings = ChannelsSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    remotes: RemotesSettings = RemotesSettings()
    retention: Retention = Retention()
    plugins: PluginsSettings = PluginsSettings()


PLUGIN_TABLES = ("adapters", "channels", "plugins")
"""The tables whose sub-tables belong to plugins."""
