"""The page of the configuration: every section and key with type, default and meaning."""

import importlib
import tomllib
import typing
from importlib.metadata import distribution
from pathlib import Path

import msgspec

from generator.markdown import code, default, fields_table, prose, shown, table
from trunkline.config.plugin_host import PluginHostSettings
from trunkline.config.settings import Settings
from trunkline.contracts.plugins.extensions import ConfigSection

ROOT = Path(__file__).parents[2]

INTRODUCTION = """
# Configuration

Settings stand in `trunkline.toml` in the home folder, `~/.trunkline` or the folder that `TRUNKLINE_HOME` names.
Everything has a default, so the file may be absent. A setting is looked for in this order; the last one found counts:

1. the default,
2. `trunkline.toml`,
3. the environment: `TRUNKLINE_<SECTION>__<KEY>`, in capitals, with two underscores between,
4. a flag of the command.

`trunkline config` prints every setting with its value and where it comes from. A key that does not exist, or a
value that does not fit, stops the start with file, line and the nearest name. Lengths of time are seconds, sizes
are bytes, and paths that do not begin with `/` are inside the home folder.

A **secret** is never written into the file. Write the name of the environment variable that holds it:
`{ env = "NAME" }`, or `"$NAME"`.

Agents' own choices are not here but in memory, in plain files: `preferences.toml` (which model answers, which
tools it always has) and `blocks/<block>/block.toml` (a block's description, goals, model and tools; see
[BlockConfig](messages.md#blockconfig)).
"""

MEANING = {
    "runtime.memory_root": "where memory is kept: a git repository of plain files",
    "runtime.provider_adapter": "the adapter that asks the model. `auto`: the first that is configured, else `offline`",
    "runtime.auth_mode": "how people prove who they are; there is one way so far, the token of this home",
    "runtime.tool_sources": "folders whose `.py` files are plugins and whose `tool.json` files are programs",
    "bus.url": "the NATS server, several with commas between. Nothing: an embedded one is started",
    "bus.user": "the user for that server",
    "bus.password": "the user's password",
    "bus.credentials_file": "a NATS credentials file, in place of user and password",
    "bus.inbox_prefix": "the first part of reply subjects; `{user}` at its end stands for `bus.user`",
    "bus.manage_streams": "whether workers create the streams they need. `false`: `trunkline run streams` does",
    "bus.connect_timeout": "how long a worker that starts waits for NATS before it gives up",
    "bus.replicas": "on how many servers of a cluster each stream is kept",
    "bus.sync_interval": "when the embedded server flushes what it acknowledges to disk: `always` before, else after "
    "that many seconds at most; see [durability](../explanation/durability.md)",
    "bus.feed_storage": "where the feed is stored: `file` (a crash may lose its end) or `memory` (a restart loses it)",
    "gateway.host": "the address to listen on; anything but 127.0.0.1 opens the gateway to the network",
    "gateway.port": "the port; 0 takes any free one",
    "gateway.allowed_hosts": "further host names that requests may name, such as a reverse proxy's; others are "
    "refused",
    "gateway.max_content": "how large a message may be",
    "gateway.max_queued": "how many messages of one conversation may wait for their answers; further ones are refused",
    "gateway.header_timeout": "how long the header of a request may take to arrive; then the connection is closed",
    "gateway.body_timeout": "how long the body of a request may take to arrive",
    "gateway.metrics": "who may read `/metrics`: `token`, `open` (anybody who reaches the port) or `off`",
    "approvals.deadline": "how long a call waits for a person's decision; then it is denied",
    "approvals.background_deadline": "the same for turns that no message started; this version starts none",
    "approvals.channel_deadlines": "the same for the turns of a channel, by its name: `{ mail = 259200 }` is three "
    "days",
    "approvals.remind_after_share": "people are reminded after this share of the deadline, above 0 and up to 1; 1 is "
    "never",
    "gateway.default_block": "the block for messages that name none; it is made on the first start",
    "monitor.engine": "serve the bare agent loop, `POST /engine/chat`, to whoever has the token of the home",
    "monitor.engine_port": "the loopback port of the bare agent loop; 0 takes any free one",
    "monitor.bootstrap": "the first line of what every model is told",
    "monitor.context_window": "how many tokens a model accepts that `models.context_windows` does not name; context "
    "is cut to fit",
    "monitor.context_share": "the share of the context window that files of memory and recall may fill",
    "monitor.model_idle_timeout": "how long a model may be silent before its call fails",
    "monitor.max_answer": "how much a model may say in one call, with reasoning and tool calls; the rest is cut off",
    "monitor.max_tool_calls": "how many tool calls of one answer are run; the others are refused",
    "monitor.parallel_tool_calls": "how many tool calls of one turn run at once",
    "monitor.tool_idle_timeout": "how long a tools worker may be silent before its call is sent again, under the same "
    "key",
    "monitor.text_flush_seconds": "how long text is collected before it is shown",
    "monitor.discovery_threshold": "how many tools a block may have to send its model all of them; with more it is "
    "sent at most so many, and finds and loads the others. `discovery` in `block.toml` or `preferences.toml` goes "
    "before",
    "monitor.concurrency": "how many conversations are worked on at once",
    "monitor.drain_timeout": "how long running turns may take to end when the worker stops; then another monitor "
    "continues them",
    "models.prices": "what models cost, in US dollars per million tokens: "
    '`"openai/gpt-4.1" = { input = 2.0, cached = 0.5, output = 8.0 }`. `*` in a name stands for any text; the name of '
    "an adapter alone is for its default model. A model without a price counts as free, and the log says so",
    "models.context_windows": 'how many tokens a model accepts: `"openai/gpt-4.1" = 1000000`',
    "permissions.scope": "for blocks that do not say: how far file tools reach, `block`, `workspace` or `system`",
    "permissions.allow_shell": "whether agents may run programs; see [permissions](messages.md#permissiontable)",
    "permissions.allow_network": "whether tools, and with `true` programs, reach other hosts",
    "permissions.max_timeout": "how many seconds a program may run",
    "permissions.approvals": "which calls a person is asked about: `all`, `some` (what writes, sends or runs), `none`",
    "permissions.plan": "whether agents only read and plan",
    "audit.detail": "what the audit log has of arguments and results: `minimal` none, `standard` the beginning of each "
    "argument, `verbose` both",
    "tools.workspaces": "holds one folder a block, in which its file tools work",
    "tools.max_shown_result": "up to which size a tool's result is shown to the model whole; of a larger one it is "
    "shown the beginning and the end, and `read_result` reads the rest",
    "tools.max_stored_result": "how much of a tool's result is stored at most",
    "tools.timeout": "how long a tool may take that does not say so itself",
    "tools.drain_timeout": "how long running calls may take to end when the worker stops",
    "tools.answer_wait": "how long a running call that must not run twice waits for a person's answer",
    "tools.concurrency": "how many tools run at once",
    "tools.backlog": "how many calls wait for one of those places; more are refused for the moment and asked for again",
    "retention.inbox_mb": "how much may wait in the inbox, in MB; then messages are refused, and none is dropped",
    "retention.journal_days": "how long journals of turns and the effect ledger are kept, in days",
    "retention.journal_mb": "how much of the journals is kept, in MB",
    "retention.effect_mb": "how much of the effect ledger is kept, in MB",
    "retention.feed_hours": "how long the feed can be read again, in hours",
    "retention.feed_mb": "how much of the feed is kept, in MB",
    "retention.fact_days": "how long facts about turns are kept, in days",
    "retention.fact_mb": "how much of them is kept, in MB",
    "retention.trace_days": "how long spans are kept for `trunkline trace`, in days",
    "retention.trace_mb": "how much of them is kept, in MB",
    "retention.audit_days": "how long the stream of the audit log is kept, in days; memory keeps its lines",
    "retention.audit_mb": "how much of it is kept, in MB",
    "retention.dead_letter_days": "how long dead letters are kept, in days",
    "retention.dead_letter_mb": "how many MB of them are kept",
    "retention.approval_mb": "how much is kept of where approvals stand, and of their timers, in MB each",
    "retention.result_days": "how long tool results that are too long for their conversation are kept, in days",
    "retention.result_mb": "how much of them is kept, in MB; then the oldest go",
    "retention.body_mb": "how much of bodies above 128 KiB is kept, in MB; then such messages are refused",
    "retention.log_mb": "how large a log file in `logs/` grows, in MB, before a new one is begun",
    "retention.log_files": "how many full ones are kept of each",
    "retention.log_days": "after how many days a log file that nobody writes any more is removed",
    "memory.embedder": "what turns texts into vectors: a plugin's embedder, or `ADAPTER/MODEL`. Nothing: words alone",
    "memory.commit_window": "how long writes are collected into one commit at most",
    "memory.fsync": "whether a commit is on disk before it is acknowledged; with `false` a power cut may lose the "
    "newest history",
    "memory.redact": "names by which secrets go: what stands behind `api_key=` and the like is not kept in memory",
    "memory.store": "the plugin whose store keeps memory. Nothing: `trunkline-git-store`",
    "documents.read_timeout": "how long reading one document may take, in its process; then it is skipped",
    "documents.read_memory_mb": "how much memory that process may use, in MiB",
    "documents.watch": "folders whose files are brought into memory as they change: tables of `folder`, `block` (all "
    "blocks without it) and `prune` (whether what is deleted there is taken out of memory)",
    "documents.conversation_days": "how long documents of a conversation are kept when nobody looks at them",
    "channels.enabled": "the channels that are run; a channel at a terminal is run by `trunkline chat`",
    "telemetry.log_level": "how much is logged",
    "telemetry.capture_content": "whether traces hold what people, models and tools say",
    "telemetry.traces": "whether turns are traced at all",
    "remotes.listen": "where other hosts connect, `host:port`, for `trunkline remote`. Nothing: none can",
    "remotes.unreachable_timeout": "how long a call waits for its result while its host is unreachable",
    "plugins.disabled": "plugins that are not loaded, by distribution or entry point",
    "plugins.required": "plugins without which no worker starts",
    "plugins.import_timeout": "how long the import of a plugin may take; then the worker goes on without it",
    "plugins.stall_timeout": "how long a process may be blocked before it ends itself and names the code that blocked "
    "it; 0: no limit",
    "plugins.max_crashes": "how many crashes within an hour, caused by the same plugin's code, put it into "
    "quarantine; 0: none do",
}
"""What each key means. One that is missing here, or is no key any more, stops the generator."""


def page() -> str:
    """The whole page."""
    keys = {
        f"{part.name}.{field.name}" for part in _sections() for field in msgspec.structs.fields(part.type)
    }
    assert keys == set(MEANING), f"tell the meaning of {keys ^ set(MEANING)}"
    parts = [INTRODUCTION.strip(), *map(_section, _sections())]
    return "\n\n".join([*parts, *_plugins()])


def _sections() -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(Settings)


def _section(part: msgspec.structs.FieldInfo) -> str:
    hints = typing.get_type_hints(part.type, include_extras=True)
    rows = [
        (
            code(field.name),
            shown(hints[field.name]),
            default(field).replace("PosixPath", ""),
            MEANING[f"{part.name}.{field.name}"],
            code(f"TRUNKLINE_{part.name}__{field.name}".upper()),
        )
        for field in msgspec.structs.fields(part.type)
    ]
    return f"## [{part.name}]\n\n" + table(("key", "type", "default", "means", "environment"), rows)


def _plugins() -> list[str]:
    """The sections of the plugins that come with the platform."""
    note = (
        "Each plugin checks its own section. These come with the platform. From the environment they are set by "
        "`TRUNKLINE_ADAPTERS__OPENAI__MODEL` and the like."
    )
    parts = [f"## Sections of plugins\n\n{note}"]
    parts.append(
        f"### Keys of every plugin\n\n{prose(PluginHostSettings)}\n\n{fields_table(PluginHostSettings)}"
    )
    for section in _declared():
        title = f"### [{section.table}.{section.name}]"
        parts.append(f"{title}\n\n{prose(section.type)}\n\n{fields_table(section.type)}")
    return parts


def _declared() -> list[ConfigSection]:
    found: list[ConfigSection] = []
    for file in sorted(ROOT.glob("[apc]*/*/pyproject.toml")):
        name = tomllib.loads(file.read_text())["project"]["name"]
        for point in distribution(name).entry_points.select(group="trunkline"):
            declare = getattr(importlib.import_module(point.value), "trunkline_config", None)
            found += declare() if declare else []
    return sorted(found, key=lambda section: (section.table, section.name))
