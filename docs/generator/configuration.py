"""The page of the configuration: every section and key with type, default and meaning."""

import tomllib
import typing
from importlib.metadata import distribution
from pathlib import Path

import msgspec

from generator.markdown import code, default, fields_table, prose, shown, table
from trunkline.config.plugin_host import PluginHostSettings
from trunkline.config.settings import OLD_RESULTS, Settings
from trunkline.contracts.plugins.extensions import ConfigSection

ROOT = Path(__file__).parents[2]

INTRODUCTION = """
# Configuration

Settings are in `trunkline.toml` in the home folder, `~/.trunkline` or the folder that `TRUNKLINE_HOME` names.
Every setting has a default, so the file is optional. A setting is looked up in this order; the last value found counts:

1. the default,
2. `trunkline.toml`,
3. the environment: `TRUNKLINE_<SECTION>__<KEY>`, in capitals, with two underscores between,
4. a flag of the command.

`trunkline config` prints every setting with its value and the source of the value. An unknown key or an invalid value
stops the start; the message names file, line and the nearest key. Lengths of time are in seconds, sizes
in bytes, and paths that do not begin with `/` are inside the home folder.

Do not write a **secret** into the file. Write the name of the environment variable that holds it:
`{ env = "NAME" }`, or `"$NAME"`.

The choices of blocks and agents are in memory, in plain files: `preferences.toml` (which model answers, which
tools it always has) and `blocks/<block>/block.toml` (a block's description, goals, model and tools; see
[BlockConfig](messages.md#blockconfig)).
"""

MEANING = {
    "runtime.memory_root": "the folder of memory: a git repository of plain files",
    "runtime.provider_adapter": "the adapter that calls the model. `auto`: the one with settings of its own, else a "
    "bundled one whose key is set, else `offline`",
    "runtime.auth_mode": "how clients authenticate; the only value is the token of this home",
    "runtime.tool_sources": "folders whose `.py` files are plugins and whose `tool.json` files are programs",
    "bus.url": "the NATS server; several are separated by commas. Without a value an embedded server starts",
    "bus.user": "the user at that server",
    "bus.password": "the user's password",
    "bus.credentials_file": "a NATS credentials file, instead of user and password",
    "bus.inbox_prefix": "the prefix of reply subjects; `{user}` at its end stands for `bus.user`",
    "bus.manage_streams": "whether workers create the streams that they need. With `false`, `trunkline run "
    "streams` creates them",
    "bus.connect_timeout": "the longest time that a starting worker waits for NATS",
    "bus.replicas": "the number of servers of a cluster that store each stream",
    "bus.sync_interval": "when the embedded server flushes to disk what it acknowledges: `always` before it "
    "acknowledges, else at most that many seconds later; see [durability](../explanation/durability.md)",
    "bus.feed_storage": "the storage of the feed: `file` (a crash may lose its end) or `memory` (a restart "
    "loses it)",
    "gateway.host": "the address on which the gateway listens; any other than 127.0.0.1 opens it to the "
    "network",
    "gateway.port": "the port; 0 takes any free one",
    "gateway.allowed_hosts": "further host names that requests may have, such as a reverse proxy's; requests "
    "with any other are refused",
    "gateway.tls_certificate": "the file of the certificate with which the gateway speaks TLS, in PEM; `trunkline "
    "certificate` makes one",
    "gateway.tls_key": "the file of its private key, in PEM, without a password and not readable by everybody",
    "gateway.behind_proxy": "whether a proxy with TLS is in front of the gateway; without TLS of its own, only then "
    "may it listen on an address other than 127.0.0.1",
    "gateway.max_content": "the largest size of a message",
    "gateway.max_queued": "the largest number of messages of one conversation that wait for their answers; "
    "further ones are refused",
    "gateway.max_attachments": "the largest number of files of one request",
    "gateway.max_attachment_mb": "the largest size of a file of a message, and of an uploaded file, in MiB",
    "gateway.max_attachments_mb": "the largest size of all files of one request together, in MiB",
    "gateway.header_timeout": "the longest time for the header of a request; then the connection is closed",
    "gateway.body_timeout": "the longest time for the body of a request, and a second more for each 32 KiB of it",
    "gateway.max_sockets": "the largest number of open WebSockets of one identity",
    "gateway.ping_interval": "the time between two pings over a WebSocket; one that is not answered as long closes it",
    "gateway.metrics": "who may read `/metrics`: `token`, `open` (anybody who reaches the port) or `off`",
    "approvals.deadline": "the time after which a call without a decision is denied",
    "approvals.background_deadline": "the same for turns in the background, such as runs of workflows",
    "approvals.channel_deadlines": "the same for the turns of a channel, by its name: `{ mail = 259200 }` is "
    "three days",
    "approvals.remind_after_share": "the share of the deadline after which a reminder is sent, above 0 and "
    "up to 1; 1 sends none",
    "gateway.default_block": "the block of messages that name none; the first start creates it",
    "monitor.engine": "whether the bare agent loop, `POST /engine/chat`, is served to clients with the token "
    "of the home",
    "monitor.engine_port": "the loopback port of the bare agent loop; 0 takes any free one",
    "monitor.bootstrap": "the first line of every system prompt",
    "monitor.context_window": "the context window, in tokens, of a model that `models.context_windows` does "
    "not name; context is cut to fit",
    "monitor.context_share": "the share of the context window that files of memory and recall may fill",
    "monitor.model_idle_timeout": "the longest time without any output of a model; then the call fails",
    "monitor.max_answer": "the largest size of one answer of a model, with reasoning and tool calls; the "
    "rest is cut off",
    "monitor.max_tool_calls": "the largest number of tool calls of one answer that run; the others are "
    "refused",
    "monitor.parallel_tool_calls": "the largest number of tool calls of one turn that run at once",
    "monitor.tool_idle_timeout": "the longest time without a sign of life from the tools worker; then the "
    "call is sent again, under the same key",
    "monitor.text_flush_seconds": "the longest time that text is collected before it is shown",
    "monitor.old_results": "the number of characters to which results of earlier turns are cut when a model is "
    "sent them, by tool; of `discover_tools` a sentence is sent in place of its list. The default is "
    f"`{{ {', '.join(f'{tool} = {size}' for tool, size in OLD_RESULTS)} }}`; a table in `trunkline.toml` replaces "
    "it, and `{}` leaves all results whole",
    "monitor.discovery_threshold": "the largest number of tools that a model receives; with more tools in a "
    "block the model searches for the others and loads them. `discovery` in `block.toml` or "
    "`preferences.toml` overrides it",
    "monitor.concurrency": "the largest number of conversations that one monitor works on at once",
    "monitor.background_concurrency": "the largest number of background turns among them; further ones wait, "
    "also while other slots are free. One slot is always left to people, unless `concurrency` is 1",
    "monitor.background_wait": "the time after which a background turn waits like an interactive one and is not "
    "preempted again",
    "monitor.drain_timeout": "the time that running turns have to end when the worker stops; then another "
    "monitor continues them",
    "agents.max_depth": "how many agents may work below a person's turn, one below the other",
    "agents.max_running": "the largest number of agents' tasks that run at the same time for one turn of a person",
    "agents.timeout": "the longest time of a task, including the time in which it waits for a person",
    "models.prices": 'the prices of models, in US dollars per million tokens: `"openai/gpt-4.1" = { input = '
    "2.0, cached = 0.5, output = 8.0 }`. `*` in a name stands for any text; the name of an adapter alone is "
    "for its default model. These prices have precedence over the list that Trunkline ships. A "
    "model without a price counts as free, and the log says so",
    "models.context_windows": 'the context windows of models, in tokens: `"openai/gpt-4.1" = 1000000`',
    "permissions.scope": "the folders that file tools reach in blocks without a scope of their own: `block`, "
    "`workspace` or `system`",
    "permissions.allow_shell": "whether agents may run programs; see "
    "[permissions](messages.md#permissiontable)",
    "permissions.allow_network": "whether tools, and with `true` programs, reach other hosts",
    "permissions.max_timeout": "the longest time, in seconds, that a program may run",
    "permissions.approvals": "the calls that need a person's approval: `all`, `some` (calls that write, send "
    "or run), `none`",
    "permissions.plan": "whether agents only read and plan",
    "audit.detail": "the part of arguments and results in the audit log: `minimal` none, `standard` the "
    "beginning of each argument, `verbose` both",
    "tools.workspaces": "the folder that has one folder for each block, in which its file tools work",
    "tools.max_shown_result": "the largest size of a tool's result that the model receives whole; of a "
    "larger one it receives the beginning and the end, and `read_result` reads the rest",
    "tools.max_stored_result": "the largest size of a tool's result that is stored",
    "tools.timeout": "the longest time of a tool that sets no timeout itself",
    "tools.drain_timeout": "the time that running calls have to end when the worker stops",
    "tools.answer_wait": "the time that a running call that must not run twice waits for a person's answer",
    "tools.concurrency": "the largest number of tools that run at once",
    "tools.backlog": "the largest number of calls that wait for a free place; further ones are refused, and "
    "the monitor sends them again",
    "retention.inbox_mb": "the largest size of the inbox, in MB; then messages are refused, and none is "
    "dropped",
    "retention.journal_days": "the days for which journals of turns and the effect ledger are kept",
    "retention.journal_mb": "the largest size of the journals, in MB",
    "retention.effect_mb": "the largest size of the effect ledger, in MB",
    "retention.feed_hours": "the hours for which the feed can be read again",
    "retention.feed_mb": "the largest size of the feed, in MB",
    "retention.fact_days": "the days for which facts about turns are kept",
    "retention.fact_mb": "the largest size of those facts, in MB",
    "retention.trace_days": "the days for which spans are kept for `trunkline trace`",
    "retention.trace_mb": "the largest size of those spans, in MB",
    "retention.audit_days": "the days for which the stream of the audit log is kept; memory keeps its lines",
    "retention.cost_days": "the days for which the stream of the cost ledger is kept; memory keeps its entries",
    "retention.cost_mb": "the largest size of that stream, in MB, and of the streams of budgets and opened requests",
    "retention.audit_mb": "the largest size of that stream, in MB",
    "retention.dead_letter_days": "the days for which dead letters are kept",
    "retention.dead_letter_mb": "the largest size of the dead letters, in MB",
    "retention.approval_mb": "the largest size of the states of approvals, and of their timers, in MB each",
    "retention.schedule_mb": "the largest size of the timers of schedules, in MB; gateways arm a deleted timer again",
    "retention.result_days": "the days for which tool results are kept that are too long for their "
    "conversation",
    "retention.result_mb": "the largest size of those results, in MB; then the oldest are deleted",
    "retention.file_days": "the days for which uploaded files are kept; a message keeps its own copy",
    "retention.file_mb": "the largest size of the uploaded files together, in MB; then uploads are refused",
    "retention.body_mb": "the largest size of message bodies above 128 KiB together, in MB; then such "
    "messages are refused",
    "retention.log_mb": "the size, in MB, at which a log file in `logs/` is closed and a new one begun",
    "retention.log_files": "the number of closed files that are kept of each log",
    "retention.log_days": "the days after which a log file that no process writes any more is deleted",
    "memory.embedder": "the embedder that makes vectors of texts: a plugin's, or `ADAPTER/MODEL`. Without a "
    "value search uses words alone",
    "memory.commit_window": "the longest time that writes are collected for one commit",
    "memory.fsync": "whether a commit is on disk before it is acknowledged; with `false` a power cut may "
    "lose the newest history",
    "memory.redact": "names of secrets: the value behind `api_key=` and the like is not stored in memory",
    "memory.store": "the plugin whose store keeps memory. Without a value: `trunkline-git-store`",
    "documents.read_timeout": "the longest time for reading one document, in its process; then the document "
    "is skipped",
    "documents.read_memory_mb": "the largest memory of that process, in MiB",
    "documents.watch": "folders whose files are imported into memory when they change: tables of `folder`, "
    "`block` (all blocks without it) and `prune` (whether a file that is deleted there is deleted from "
    "memory)",
    "documents.conversation_days": "the days for which documents of a conversation are kept after their last "
    "use",
    "channels.enabled": "the channels that run; a channel at a terminal is run by `trunkline chat`",
    "telemetry.log_level": "the lowest level that is logged",
    "telemetry.capture_content": "whether traces contain the text of people, models and tools",
    "telemetry.traces": "whether turns are traced",
    "remotes.listen": "the address at which other hosts connect, `host:port`, for `trunkline remote`. "
    "Without a value no host can connect",
    "remotes.unreachable_timeout": "the longest time that a call waits for its result while its host is "
    "unreachable",
    "plugins.disabled": "plugins that are not loaded, by distribution or entry point",
    "plugins.required": "plugins without which no worker starts",
    "plugins.import_timeout": "the longest time for the import of a plugin; then the worker continues "
    "without it",
    "plugins.stall_timeout": "the longest time that the event loop of a process may be blocked; then the "
    "process ends and names the code that blocked it; 0: no limit",
    "plugins.max_crashes": "the number of crashes within an hour, caused by the same plugin's code, that "
    "puts the plugin into quarantine; 0: none does",
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
    declared = _declared()
    originals = [(section, _original(section, declared)) for section in declared]
    for section, original in originals:
        if original is None:
            title = f"### [{section.table}.{section.name}]"
            same = _same_keys([variant for variant, its in originals if its is section])
            parts.append(f"{title}\n\n{prose(section.type)}{same}\n\n{fields_table(section.type)}")
    return parts


def _original(section: ConfigSection, declared: list[ConfigSection]) -> ConfigSection | None:
    """The declared section whose type this one's type specializes without keys of its own."""
    fields = section.type.__struct_fields__
    return next(
        (
            one
            for one in declared
            if one is not section
            and issubclass(section.type, one.type)
            and fields == one.type.__struct_fields__
        ),
        None,
    )


def _same_keys(variants: list[ConfigSection]) -> str:
    if not variants:
        return ""
    listed = ", ".join(f"`[{section.table}.{section.name}]`" for section in variants)
    return (
        f"\n\nThe same keys are in {listed}, with the address and the key variable of "
        "[the vendor](../how-to/openai-compatible-vendors.md)."
    )


def _declared() -> list[ConfigSection]:
    found: list[ConfigSection] = []
    for file in sorted(ROOT.glob("[apc]*/*/pyproject.toml")):
        name = tomllib.loads(file.read_text())["project"]["name"]
        for point in distribution(name).entry_points.select(group="trunkline"):
            loaded = point.load()
            plugin = loaded() if isinstance(loaded, type) else loaded
            declare = getattr(plugin, "trunkline_config", None)
            found += declare() if declare else []
    return sorted(found, key=lambda section: (section.table, section.name))
