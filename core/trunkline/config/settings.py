"""The platform's settings, section by section, with their defaults. Plain data: no reading, no I/O.

Paths that are not absolute are relative to the home folder. Durations are seconds, sizes bytes.
What belongs to one plugin is not here but in its own ``[plugins.X]``, ``[adapters.X]`` or ``[channels.X]`` table.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from trunkline._util.secrets import SECRET_NAMES
from trunkline.config.secret import Secret
from trunkline.contracts.policies.messages import PermissionTable
from trunkline.contracts.retention import Retention
from trunkline.policy import DEFAULT_TABLE

Seconds = Annotated[float, msgspec.Meta(gt=0)]
NonNegativeSeconds = Annotated[float, msgspec.Meta(ge=0)]
PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
HostName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9.-]{1,253}$")]
BlockName = Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,31}$")]


class RuntimeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[runtime]``: the four fields of the runtime configuration (PA-F42), and no others."""

    memory_root: Path = Path("memory")
    provider_adapter: str = "auto"
    auth_mode: Literal["local"] = "local"
    tool_sources: tuple[Path, ...] = ()


class BusSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[bus]``: where NATS is. Without a ``url`` the embedded server is used.

    ``inbox_prefix`` is the first part of reply subjects, with the user for ``{user}``. Without ``prepare`` workers
    make no streams and stand on those that ``trunkline run streams`` keeps. ``wait`` is for how long a worker that
    starts waits for NATS to be there.

    ``sync`` is when the embedded server brings what it acknowledges to the disk: before (``always``), or after so many
    seconds at most. ``feed`` is where the feed of turns is kept.
    """

    url: str | None = None
    user: str | None = None
    password: Secret | None = None
    credentials_file: Path | None = None
    inbox_prefix: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]+(\{user\})?$")] = "_INBOX"
    prepare: bool = True
    wait: NonNegativeSeconds = 60.0
    replicas: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    sync: Literal["always"] | Seconds = "always"
    feed: Literal["file", "memory"] = "file"


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[gateway]``: where people and programs come in. Port 0 takes any free one.

    ``max_content`` is how many bytes a message may have, ``max_queued`` how many messages of one conversation may wait
    for their answers, the one that is being answered included; further ones are refused.
    ``head_timeout`` and ``body_timeout`` are how long the head and the body of a request may take to come.
    ``hosts`` are further names that the gateway is reached by, such as a proxy's.
    ``metrics`` says who may read ``/metrics``: whoever has the token, anybody (``open``), or nobody (``off``).
    """

    host: str = "127.0.0.1"
    port: Port = 8420
    hosts: tuple[HostName, ...] = ()
    max_content: PositiveInt = 1_000_000
    max_queued: PositiveInt = 200
    head_timeout: Seconds = 10.0
    body_timeout: Seconds = 60.0
    default_block: BlockName = "main"
    metrics: Literal["token", "open", "off"] = "token"


class ApprovalsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[approvals]``: how long a person is waited for who has to decide about a call. Then it is denied.

    ``deadline`` is for turns that a message began, ``background`` for turns that began otherwise (this version begins
    none), ``channels`` for those of a channel, by its name. ``remind`` is the part of that time after which people
    are reminded; 1 is never.
    """

    deadline: Seconds = 300.0
    background: Seconds = 86_400.0
    channels: dict[str, Seconds] = {}
    remind: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.8


class MonitorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[monitor]``: the resident agents.

    ``model_silence`` and ``tool_silence`` are how long a model or tool may say nothing before it counts as gone,
    ``max_answer`` how much it may say in one call, ``coalesce`` how long text is gathered before it is shown,
    ``concurrency`` how many turns run at once. ``window`` is how many tokens a model takes in of which
    ``[models.windows]`` does not tell, ``context_share`` the part of a window that files and recall may fill. A block
    with more than ``discovery_above`` tools sends its model at most so many and lets it find the others.

    ``max_tool_calls`` is how many tool calls of one answer are run; the others are refused, and the model is told.
    ``parallel_tool_calls`` is how many calls of one turn run at once. Nothing limits how many steps a turn has.

    With ``engine`` the agent loop is also served by itself, ``POST /engine/chat`` on ``127.0.0.1:engine_port`` (0 takes
    any free port), for whoever has the home's token.
    """

    engine: bool = False
    engine_port: Port = 8422
    bootstrap: str = "Read AGENT.md for your instructions."
    window: PositiveInt = 32_000
    context_share: Annotated[float, msgspec.Meta(gt=0, le=0.9)] = 0.2
    model_silence: Seconds = 120.0
    max_answer: PositiveInt = 4_000_000
    max_tool_calls: PositiveInt = 128
    parallel_tool_calls: PositiveInt = 16
    tool_silence: Seconds = 1.5
    coalesce: NonNegativeSeconds = 0.015
    discovery_above: Annotated[int, msgspec.Meta(ge=0)] = 12
    concurrency: PositiveInt = 256
    drain: NonNegativeSeconds = 20.0


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model costs, in US dollars per million tokens. ``cached`` is for input that the vendor had cached; without
    it that costs as much as other input."""

    input: Annotated[float, msgspec.Meta(ge=0)]
    output: Annotated[float, msgspec.Meta(ge=0)]
    cached: Annotated[float, msgspec.Meta(ge=0)] | None = None


class ModelsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[models]``: what models cost, by ``adapter/model``, as in ``[models.prices."openai/gpt-4.1"]``, and by the same
    names how many tokens they take in (``windows``).

    A ``*`` in the name of a price stands for any text; a name without one goes before, then the longer one. The name
    of an adapter alone is for its default model.
    """

    prices: dict[str, Price] = {}
    windows: dict[str, PositiveInt] = {}


class ToolsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[tools]``: ``workspaces`` holds one folder a block; ``timeout`` is for tools that set none; ``hold`` is how
    long a call that must not run twice waits for a person's answer in its middle.

    Of the calls of one worker ``concurrency`` run at once and ``backlog`` wait; it refuses more for the moment, and
    whoever asked asks again.

    A result of more than ``shown_result`` bytes is kept apart, and the model is shown its beginning and its end; of one
    that has more than ``largest_result`` bytes no more than that is kept.
    """

    workspaces: Path = Path("workspaces")
    timeout: Seconds = 60.0
    drain: NonNegativeSeconds = 20.0
    hold: Seconds = 300.0
    concurrency: PositiveInt = 64
    backlog: PositiveInt = 512
    shown_result: Annotated[int, msgspec.Meta(ge=1_000)] = 131_072
    largest_result: Annotated[int, msgspec.Meta(ge=1_000)] = 16_777_216


class MemorySettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[memory]``: ``group_window`` is how long writes are gathered into one commit at most; with ``sync`` a commit is
    on the disk before it is acknowledged.

    ``store`` names the plugin (its distribution) whose store keeps memory; without it the built-in one does.
    ``embedder`` names what turns texts into vectors, so that search finds what is meant: one of a plugin, or a model
    adapter with its model (``openai/text-embedding-3-small``). ``redact`` are the names by which secrets go: what
    stands behind ``api_key=`` and the like is not kept.
    """

    group_window: NonNegativeSeconds = 0.004
    sync: bool = True
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
    """``[documents]``: ``seconds`` and ``memory`` (in MiB) are what reading one file may cost.

    ``conversation_days`` is how long the documents of a conversation are kept that nobody looks at. ``watch`` are the
    folders that the tools worker watches.
    """

    seconds: Seconds = 120.0
    memory: Annotated[int, msgspec.Meta(ge=128)] = 1024
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

    ``patience`` is for how many seconds the result of a call is waited for while its host is out of reach.
    """

    listen: Annotated[str, msgspec.Meta(pattern=r"^(\[[0-9a-fA-F:]+\]|[^:\s]+):[0-9]{1,5}$")] | None = None
    patience: Seconds = 7_200.0


class PluginsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``[plugins]``: plugins never to load, and plugins without which a worker refuses to start.

    ``import_seconds`` is how long the import of one may take, ``stall`` how long a process may be held up before it
    ends itself (0: for ever), ``crashes`` how many times within an hour one may end its process (0: as often as it
    likes).
    """

    disabled: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    import_seconds: Seconds = 10.0
    stall: NonNegativeSeconds = 30.0
    crashes: Annotated[int, msgspec.Meta(ge=0)] = 3


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
