"""The platform's settings, section by section, with their defaults. Plain data: no reading, no I/O.

Paths that are not absolute are relative to the home folder. Durations are seconds, sizes bytes.
What belongs to one plugin is not here but in its own ``[plugins.X]``, ``[adapters.X]`` or ``[channels.X]`` table.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from trunkline._util.secrets import SECRET_NAMES
from trunkline.config.secret import Secret
from trunkline.contracts.blocks.paths import BLOCK_NAME
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
    """``[runtime]``: the four fields of the runtime configuration, and no others."""

    memory_root: Path = Path("memory")
    provider_adapter: str = "auto"
    auth_mode: Literal["local"] = "local"
    tool_sources: tuple[Path, ...] = ()


class BusSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[bus]``: where NATS is. Without a ``url`` the embedded server is used.

    ``inbox_prefix`` is the first part of reply subjects, with the user for ``{user}``. Without ``manage_streams``
    workers create no streams and use those that ``trunkline run streams`` keeps. ``connect_timeout`` is how long a
    worker that starts waits for NATS.

    ``sync_interval`` is when the embedded server flushes what it acknowledges to disk: before (``always``), or after
    that many seconds at most. ``feed_storage`` is where the feed of turns is kept.
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
    """``[gateway]``: where people and programs come in. Port 0 takes any free one.

    ``max_content`` is how many bytes a message may have, ``max_queued`` how many messages of one conversation may wait
    for their answers, the one that is being answered included; further ones are refused.
    ``header_timeout`` and ``body_timeout`` are how long the header and the body of a request may take to arrive.
    ``allowed_hosts`` are further names that the gateway is reached by, such as a proxy's.
    ``metrics`` says who may read ``/metrics``: whoever has the token, anybody (``open``), or nobody (``off``).
    """

    host: str = "127.0.0.1"
    port: Port = 8420
    allowed_hosts: tuple[HostName, ...] = ()
    max_content: PositiveInt = 1_000_000
    max_queued: PositiveInt = 200
    header_timeout: Seconds = 10.0
    body_timeout: Seconds = 60.0
    default_block: BlockName = "main"
    metrics: Literal["token", "open", "off"] = "token"


class ApprovalsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[approvals]``: how long a call waits for a person's decision. Then it is denied.

    ``deadline`` is for turns that a message started, ``background_deadline`` for turns that started otherwise (this
    version starts none), ``channel_deadlines`` for the turns of a channel, by its name. ``remind_after_share`` is the
    share of that time after which people are reminded, above 0 and up to 1; 1 is never.
    """

    deadline: Seconds = 300.0
    background_deadline: Seconds = 86_400.0
    channel_deadlines: dict[str, Seconds] = {}
    remind_after_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.8


class MonitorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[monitor]``: the resident agents.

    ``model_idle_timeout`` is how long a model may be silent before its call fails, ``tool_idle_timeout`` how long a
    tools worker may be silent before its call is sent again. ``max_answer`` is how much a model may send in one call,
    ``text_flush_seconds`` how long text is collected before it is shown, ``concurrency`` how many turns run at once.
    ``context_window`` is how many tokens a model accepts that ``[models.context_windows]`` does not name,
    ``context_share`` the share of it that files and recall may fill. A block with more than ``discovery_threshold``
    tools sends its model at most that many and lets it find the others.

    ``max_tool_calls`` is how many tool calls of one answer are run; the others are refused, and the model is told.
    ``parallel_tool_calls`` is how many calls of one turn run at once. Nothing limits how many steps a turn has.

    With ``engine`` the agent loop is also served by itself, ``POST /engine/chat`` on ``127.0.0.1:engine_port`` (0 takes
    any free port), for whoever has the home's token.
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
    concurrency: PositiveInt = 256
    drain_timeout: NonNegativeSeconds = 20.0


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of a model, in US dollars per million tokens. ``cached`` is for input that the vendor had cached;
    without it that costs as much as other input.
    """

    input: Annotated[float, msgspec.Meta(ge=0)]
    output: Annotated[float, msgspec.Meta(ge=0)]
    cached: Annotated[float, msgspec.Meta(ge=0)] | None = None


class ModelsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[models]``: what models cost, by ``adapter/model``, as in ``[models.prices."openai/gpt-4.1"]``, and by the same
    names how many tokens they accept (``context_windows``).

    A ``*`` in the name of a price stands for any text; a name without one goes before, then the longer one. The name
    of an adapter alone is for its default model.
    """

    prices: dict[str, Price] = {}
    context_windows: dict[str, PositiveInt] = {}


class ToolsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[tools]``: ``workspaces`` holds one folder a block; ``timeout`` is for tools that set none;
    ``answer_wait`` is how long a running call that must not run twice waits for a person's answer.

    Of the calls of one worker ``concurrency`` run at once and ``backlog`` wait; it refuses more for the moment, and
    whoever asked asks again.

    A result of more than ``max_shown_result`` bytes is stored separately, and the model is shown its beginning and its
    end. At most ``max_stored_result`` bytes of a result are stored.
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
    """``[memory]``: ``commit_window`` is how long writes are collected into one commit at most; with ``fsync`` a commit
    is on disk before it is acknowledged.

    ``store`` names the plugin (its distribution) whose store keeps memory; without it ``trunkline-git-store`` does.
    ``embedder`` names what turns texts into vectors, so that search finds what is meant: one of a plugin, or a model
    adapter with its model (``openai/text-embedding-3-small``). ``redact`` are the names by which secrets go: what
    stands behind ``api_key=`` and the like is not kept.
    """

    commit_window: NonNegativeSeconds = 0.004
    fsync: bool = True
    store: str | None = None
    embedder: str | None = None
    redact: tuple[str, ...] = SECRET_NAMES


class WatchedFolder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder whose files are brought into memory as they change: for all blocks, or for one. With ``prune`` what is
    deleted there is taken out of memory too."""

    folder: Path
    block: BlockName | None = None
    prune: bool = False


class DocumentsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[documents]``: ``read_timeout`` (seconds) and ``read_memory_mb`` (MiB) bound the reading of one file.

    ``conversation_days`` is how long the documents of a conversation are kept that nobody looks at. ``watch`` are the
    folders that the tools worker watches.
    """

    read_timeout: Seconds = 120.0
    read_memory_mb: Annotated[int, msgspec.Meta(ge=128)] = 1024
    conversation_days: NonNegativeSeconds = 30.0
    watch: tuple[WatchedFolder, ...] = ()


AuditDetail = Literal["minimal", "standard", "verbose"]


class AuditSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[audit]``: how much of what tools were given and gave stands in the audit log, besides who did what when.

    ``minimal``: nothing. ``standard``: the beginning of each argument. ``verbose``: arguments and results.
    """

    detail: AuditDetail = "standard"


class ChannelsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[channels]``: which channels ``trunkline up`` and the channels worker run."""

    enabled: tuple[str, ...] = ("terminal",)


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[telemetry]``: ``capture_content`` puts what people and models say into traces; off by default."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    capture_content: bool = False
    traces: bool = True


class RemotesSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[remotes]``: other hosts whose tools are used here. Without ``listen`` (``host:port``) none can connect.

    ``unreachable_timeout`` is how many seconds a call waits for its result while its host is unreachable.
    """

    listen: Annotated[str, msgspec.Meta(pattern=r"^(\[[0-9a-fA-F:]+\]|[^:\s]+):[0-9]{1,5}$")] | None = None
    unreachable_timeout: Seconds = 7_200.0


class PluginsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[plugins]``: plugins never to load, and plugins without which a worker refuses to start.

    ``import_timeout`` is how long the import of one may take, ``stall_timeout`` how long a process may be blocked
    before it ends itself (0: no limit), ``max_crashes`` how many times within an hour one may end its process before it
    is quarantined (0: no limit).
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
