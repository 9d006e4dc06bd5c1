"""The plugins of one worker, with a typed method for each hook. Each worker creates its own registry; there is no
global.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self, get_args

from trunkline.config import Config, ConfigProblem, InvalidConfig
from trunkline.config.problems import did_you_mean
from trunkline.config.settings import PLUGIN_TABLES
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.errors import ConfigError, PluginError
from trunkline.plugins import discovery, file_plugins
from trunkline.plugins.activity_log import ActivityKind, ActivityLog
from trunkline.plugins.config_references import missing_references, named_models
from trunkline.plugins.hook_rules import HOOK_RULES
from trunkline.plugins.hook_runner import HookRunner
from trunkline.plugins.ownership import OwnedItem
from trunkline.plugins.report import BrokenGuard, LoadReport, PluginState

if TYPE_CHECKING:
    import click

    from trunkline.contracts.auth.passkey_verifier import PasskeyVerifier
    from trunkline.contracts.channels.channel import Channel
    from trunkline.contracts.documents.reader import Reader
    from trunkline.contracts.gateway.access import AdmissionRule, Authenticator, HttpRoute, StaticSite
    from trunkline.contracts.gateway.locale import Locale
    from trunkline.contracts.gateway.messages import SendMessage
    from trunkline.contracts.memory.embedder import Embedder
    from trunkline.contracts.memory.importer import Importer
    from trunkline.contracts.memory.purger import Purger
    from trunkline.contracts.memory.search import MemoryHit, SearchMemory
    from trunkline.contracts.memory.store import ChunkType, LinkType, MemoryRule, MemoryStore
    from trunkline.contracts.models.adapter import ModelAdapter, ModelMiddleware
    from trunkline.contracts.plugins.extensions import ConfigSection, HealthCheck, Lifespan
    from trunkline.contracts.push.push_sender import PushSender
    from trunkline.contracts.sandbox.sandbox import Sandbox
    from trunkline.contracts.sentences.sentences import Sentences
    from trunkline.contracts.tools.tool import Tool, ToolMiddleware, ToolSource
    from trunkline.contracts.turns.compaction import Compactor
    from trunkline.contracts.turns.context import ContextSource, TurnInfo, TurnMiddleware
    from trunkline.contracts.turns.feed_messages import FeedEvent
    from trunkline.contracts.turns.turn_router import TurnRouter
    from trunkline_bus import BusMiddleware, Payload


class Plugins:
    """The loaded plugins. Every method returns the same objects each time, and no method raises."""

    def __init__(self, relay: HookRunner, version: str) -> None:
        self._relay = relay
        self._version = version

    @classmethod
    def load(
        cls,
        config: Config,
        *,
        worker: WorkerKind | None = None,
        extra: Iterable[object] = (),
        only: str | None = None,
    ) -> Self:
        """Find and load the plugins: entry points of the group ``trunkline`` by distribution, ``extra`` objects, then
        files.

        A plugin that cannot be loaded is reported and does not affect the others. With ``only``, the process of an
        isolated plugin loads that plugin alone.

        Raises:
            PluginError: ``worker`` is given and a plugin of ``[plugins] required`` is not loaded. Without a worker
                (``trunkline doctor``), ``report.missing`` names the plugin.
        """
        folders = config.settings.runtime.tool_sources
        version = file_plugins.folders_stamp(folders)
        relay = HookRunner(config, "plugin" if only else worker or "command")
        relay.load_all(extra, folders, only)
        if worker is not None and relay.report.missing:
            raise PluginError(
                _missing_reason(relay.report),
                hint="Install or repair it, or remove it from [plugins] required.",
            )
        return cls(relay, version)

    @property
    def activity_log(self) -> ActivityLog:
        """Return the log of active plugins, which is evaluated after a crash."""
        return self._relay.activity_log

    def record_activity(self, owner: str, doing: ActivityKind) -> AbstractContextManager[None]:
        """Return a context in which the plugin is recorded as active."""
        return self._relay.activity_log.recording(owner, doing)

    @property
    def report(self) -> LoadReport:
        """Return the result of loading each plugin."""
        return self._relay.report

    def full_report(self) -> LoadReport:
        """Call every declaring hook and return the report, which then contains all problems."""
        for hook in HOOK_RULES:
            for kind in get_args(WorkerKind) if hook == "trunkline_lifespan" else (None,):
                self.collect(hook, **({"worker": kind} if kind else {}))
        return self.report

    def sources_version(self) -> str:
        """Return a stamp of the current ``tool_sources`` folders. It is cheap to compute."""
        return file_plugins.folders_stamp(self._relay.config.settings.runtime.tool_sources)

    def is_outdated(self) -> bool:
        """Report whether a file in ``tool_sources`` was added, changed or removed since the plugins were loaded."""
        return self.sources_version() != self._version

    def broken_guards(self, hook: str) -> tuple[BrokenGuard, ...]:
        """Return the broken guards of a hook. ``collect`` replaces each with an object that refuses every call."""
        self.collect(hook)
        return tuple(guard for guard in self.report.broken_guards if guard.hook == hook)

    def collect(self, hook: str, **arguments: Any) -> tuple[OwnedItem[Any], ...]:
        """Return all items of a declaring hook, given by its full name."""
        return self._relay.collect(hook, **arguments)

    def first(self, hook: str, **arguments: Any) -> Any:
        """Return the first answer of a deciding hook, given by its full name."""
        return self._relay.first(hook, **arguments)

    def config_problems(self) -> tuple[ConfigProblem, ...]:
        """Return the problems with the plugins' sections and with the names in ``[plugins]``."""
        config = self._relay.config
        problems: list[ConfigProblem] = []
        for owned in self.config_sections():
            try:
                config.section(owned.item.table, owned.item.name, owned.item.type)
            except InvalidConfig as error:
                problems += error.problems
            except ConfigError as error:  # of the section's own check
                problems.append(_problem_of(config, owned.item, error))
        return (*problems, *config.unclaimed(self._claimed_sections()), *self._unknown_names())

    def missing_references(self) -> tuple[ConfigProblem, ...]:
        """Return a problem for each model or block that a plugin's section names and that does not exist."""
        config, adapters = self._relay.config, {owned.item.name for owned in self.models()}
        sections = (owned.item for owned in self.config_sections())
        return tuple(
            problem for section in sections for problem in missing_references(config, section, adapters)
        )

    def named_models(self) -> tuple[tuple[str, str], ...]:
        """Return the models of vendors that plugins' sections name, each with its setting."""
        sections = (owned.item for owned in self.config_sections())
        return tuple(named for section in sections for named in named_models(self._relay.config, section))

    def misspelled_sections(self) -> tuple[ConfigProblem, ...]:
        """Return a problem for each section that belongs to no plugin and has almost the name of one that does."""
        return self._relay.config.misspelled(self._claimed_sections())

    def _claimed_sections(self) -> list[tuple[str, str]]:
        """Return the table and the name of each section that an installed plugin may have."""
        report = self._relay.report
        claimed = [(owned.item.table, owned.item.name) for owned in self.config_sections()]
        claimed += [("plugins", state.name) for state in report.loaded]
        asleep = [state.name for state in report.plugins if state.status != "loaded"]
        return claimed + [(table, name) for name in asleep for table in PLUGIN_TABLES]

    def _unknown_names(self) -> list[ConfigProblem]:
        config = self._relay.config
        known = {name for state in self.report.plugins for name in (state.owner, state.name)}
        normal = {discovery.normal_name(name) for name in known}
        return [
            ConfigProblem(
                "plugins.disabled",
                config.sources.describe_location(("plugins", "disabled")),
                what,
                did_you_mean(name, known),
            )
            for name in config.settings.plugins.disabled
            if discovery.normal_name(name) not in normal
            and (what := f"names {name!r}, which is not installed")
        ]

    # Every worker ----------------------------------------------------------------------------------------------

    def config_sections(self) -> "tuple[OwnedItem[ConfigSection], ...]":
        """Return the sections that plugins add to the configuration."""
        return self.collect("trunkline_config")

    def message_types(self) -> "tuple[OwnedItem[type[Payload]], ...]":
        """Return the payload types of plugins."""
        return self.collect("trunkline_messages")

    def lifespans(self, worker: WorkerKind) -> "tuple[OwnedItem[Lifespan], ...]":
        """Return the lifespans that plugins declare for a worker of this kind."""
        return self.collect("trunkline_lifespan", worker=worker)

    def bus_middleware(self) -> "tuple[BusMiddleware, ...]":
        """Return the middleware around envelopes, for ``connect()``."""
        return tuple(owned.item for owned in self.collect("trunkline_bus_middleware"))

    def health_checks(self) -> "tuple[OwnedItem[HealthCheck], ...]":
        """Return the checks for ``trunkline doctor``."""
        return self.collect("trunkline_health_checks")

    def commands(self) -> "tuple[OwnedItem[click.Command], ...]":
        """Return the commands for the ``trunkline`` program."""
        return self.collect("trunkline_commands")

    # Monitor ---------------------------------------------------------------------------------------------------

    def context_sources(self) -> "tuple[OwnedItem[ContextSource], ...]":
        """Return the sources of context for a turn."""
        return self.collect("trunkline_context_sources")

    def turn_middleware(self) -> "tuple[OwnedItem[TurnMiddleware], ...]":
        """Return the middleware around turns, outermost first."""
        return self.collect("trunkline_turn_middleware")

    def turn_routers(self) -> "tuple[OwnedItem[TurnRouter], ...]":
        """Return the turn routers, in the order in which they are asked."""
        return self.collect("trunkline_turn_routers")

    def stop_turn(self, turn: "TurnInfo") -> str | None:
        """Return the reason to end the turn before its next step, or None. A hook that fails ends the turn."""
        answer: str | None = self._relay.first("trunkline_stop_turn", failed=_broken_turn_cap, turn=turn)
        return answer

    def models(self) -> "tuple[OwnedItem[ModelAdapter], ...]":
        """Return the model vendors."""
        return self.collect("trunkline_models")

    def select_model(self, turn: "TurnInfo", preference: str) -> str | None:
        """Return the model for a turn, or None to keep the preference."""
        answer: str | None = self.first("trunkline_select_model", turn=turn, preference=preference)
        return answer

    def model_middleware(self) -> "tuple[OwnedItem[ModelMiddleware], ...]":
        """Return the guards around model calls, outermost first."""
        return self.collect("trunkline_model_middleware")

    def compactor(self) -> "Compactor | None":
        """Return the compactor of conversations; None if no plugin has one."""
        return next((owned.item for owned in self.collect("trunkline_compactors")), None)

    # Gateway ---------------------------------------------------------------------------------------------------

    def authenticators(self) -> "tuple[OwnedItem[Authenticator], ...]":
        """Return the authenticators of requests, in order."""
        return self.collect("trunkline_authenticators")

    def admission_rules(self) -> "tuple[OwnedItem[AdmissionRule], ...]":
        """Return the rules that admit messages. A message needs the consent of every rule."""
        return self.collect("trunkline_admission_rules")

    def route(self, message: "SendMessage") -> str | None:
        """Return the block for a message that names none, or None."""
        answer: str | None = self.first("trunkline_route", message=message)
        return answer

    def http_routes(self) -> "tuple[OwnedItem[HttpRoute], ...]":
        """Return additional HTTP routes."""
        return self.collect("trunkline_http_routes")

    def static_site(self) -> "OwnedItem[StaticSite] | None":
        """Return the web app; None if no plugin has one."""
        return next(iter(self.collect("trunkline_static_sites")), None)

    def locales(self) -> "tuple[OwnedItem[Locale], ...]":
        """Return the languages of the web app."""
        return self.collect("trunkline_locales")

    def sentences(self) -> "Sentences":
        """Return the sentences of the platform and of the plugins, in English until another language is set."""
        from trunkline.contracts.sentences.sentences import Sentences

        return Sentences(owned.item for owned in self.collect("trunkline_sentences"))

    def passkey_verifier(self) -> "PasskeyVerifier | None":
        """Return the verifier of passkeys; None if no plugin has one."""
        return next((owned.item for owned in self.collect("trunkline_passkey_verifiers")), None)

    def push_sender(self) -> "PushSender | None":
        """Return the sender of push notices; None if no plugin has one."""
        return next((owned.item for owned in self.collect("trunkline_push_senders")), None)

    # Tools -----------------------------------------------------------------------------------------------------

    def tools(self) -> "tuple[OwnedItem[Tool], ...]":
        """Return the tools of all plugins."""
        return self.collect("trunkline_tools")

    def tools_called(self, name: str) -> tuple[str, ...]:
        """Return the tools that have this name as an alias; none for a tool's own name or an unknown name."""
        tools = [owned.item for owned in self.tools()]
        if any(tool.spec.name == name for tool in tools):
            return ()
        return tuple(tool.spec.name for tool in tools if any(one.schema.name == name for one in tool.aliases))

    def tool_sources(self) -> "tuple[OwnedItem[ToolSource], ...]":
        """Return the sources of tools that change at run time."""
        return self.collect("trunkline_tool_sources")

    def tool_middleware(self) -> "tuple[OwnedItem[ToolMiddleware], ...]":
        """Return the guards around tool calls, outermost first within their stage."""
        return self.collect("trunkline_tool_middleware")

    def sandboxes(self) -> "tuple[OwnedItem[Sandbox], ...]":
        """Return the sandbox backends for programs."""
        return self.collect("trunkline_sandboxes")

    def readers(self) -> "tuple[OwnedItem[Reader], ...]":
        """Return the readers of document formats."""
        return self.collect("trunkline_readers")

    # Channels --------------------------------------------------------------------------------------------------

    def channels(self) -> "tuple[OwnedItem[Channel], ...]":
        """Return the channels to people."""
        return self.collect("trunkline_channels")

    def render(self, event: "FeedEvent", channel: str) -> str | None:
        """Return a channel's text for an event; None when no plugin renders it."""
        answer: str | None = self.first("trunkline_render", event=event, channel=channel)
        return answer

    # Memory ----------------------------------------------------------------------------------------------------

    def memory_stores(self) -> "tuple[OwnedItem[MemoryStore], ...]":
        """Return the stores for memory, in load order."""
        return self.collect("trunkline_memory_stores")

    def chunk_types(self) -> "tuple[OwnedItem[ChunkType], ...]":
        """Return the types of chunks that plugins add."""
        return self.collect("trunkline_chunk_types")

    def link_types(self) -> "tuple[OwnedItem[LinkType], ...]":
        """Return the types of links that plugins add."""
        return self.collect("trunkline_link_types")

    def importers(self) -> "tuple[OwnedItem[Importer], ...]":
        """Return the importers of other systems' memories, in load order."""
        return self.collect("trunkline_importers")

    def embedders(self) -> "tuple[OwnedItem[Embedder], ...]":
        """Return the embedders, in load order."""
        return self.collect("trunkline_embedders")

    def memory_rules(self) -> "tuple[OwnedItem[MemoryRule], ...]":
        """Return the guards of changes to memory, in order."""
        return self.collect("trunkline_memory_rules")

    def purgers(self) -> "tuple[OwnedItem[Purger], ...]":
        """Return the purgers, in load order."""
        return self.collect("trunkline_purgers")

    def rank(self, query: "SearchMemory", hits: "Sequence[MemoryHit]") -> "Sequence[MemoryHit]":
        """Return the hits of a search in the order that a plugin decides; unchanged when none does."""
        answer: Sequence[MemoryHit] | None = self.first("trunkline_rank", query=query, hits=hits)
        return hits if answer is None else answer


def isolated_plugins(config: Config, extra: Iterable[object] = ()) -> tuple[PluginState, ...]:
    """Return the plugins that run in separate processes. Imports no plugin."""
    relay = HookRunner(config, "command")
    try:
        relay.load_all(extra, config.settings.runtime.tool_sources, imports=False)
    finally:
        relay.activity_log.close()
    return tuple(state for state in relay.report.plugins if state.status == "isolated")


def _missing_reason(report: LoadReport) -> str:
    reasons = {
        discovery.normal_name(name): state.reason
        for state in report.plugins
        for name in (state.owner, state.name)
    }
    said = [
        f"{name}: {reasons.get(discovery.normal_name(name)) or 'it is not installed.'}"
        for name in report.missing
    ]
    return "Required plugins are not loaded. " + " ".join(said)


def _broken_turn_cap(owner: str) -> str:
    return f"the plugin {owner}, which bounds turns, is broken"


def _problem_of(config: Config, section: "ConfigSection", error: ConfigError) -> ConfigProblem:
    """Return the problem that a section's own check reports. Its sentence usually begins with the setting's key."""
    place = f"{section.table}.{section.name}"
    first, _, rest = error.sentence.rstrip(".").partition(" ")
    key, what = (first, rest) if first.startswith(f"{place}.") else (place, error.sentence.rstrip("."))
    return ConfigProblem(key, config.sources.describe_location(tuple(key.split("."))), what, error.hint)
