"""Loads plugins and calls their hooks. Each implementation is called separately, so its failure affects no other."""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from trunkline.config import Config
from trunkline.config.settings import DEFAULT_STORE
from trunkline.contracts.plugins.extensions import ConfigSection
from trunkline.errors import PluginError, TrunklineError
from trunkline.plugins import discovery, file_plugins, isolation, manifest
from trunkline.plugins.activity_log import ActivityLog, activity_log_folder
from trunkline.plugins.fail_closed import fail_closed_guard
from trunkline.plugins.hook_rules import HOOK_RULES, HookRule, answer_problem
from trunkline.plugins.outdated_api import HINT, describe_outdated_use
from trunkline.plugins.ownership import OwnedItem
from trunkline.plugins.pins import Pin, read_pins
from trunkline.plugins.quarantine import Quarantine, QuarantineRegister
from trunkline.plugins.report import GUARD_HOOKS, LoadReport, PluginState
from trunkline.plugins.settings import ScopedPluginSettings
from trunkline.plugins.timed_import import ImportFailed, ImportTimeout, import_within

log = logging.getLogger(__name__)

SLOW_IMPORT = 1.0
"""Seconds. A longer import is logged."""

MOST_ITEMS = 10_000
"""Largest number of items of a hook. A hook that yields more is considered endless."""


@dataclass(frozen=True, slots=True)
class _Implementation:
    """The implementation of a hook by the plugin ``owner``. The other fields are those of ``HookFunction``."""

    owner: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    rank: int


class HookRunner:
    """The hooks of one worker, untyped. ``Plugins`` is the typed interface."""

    def __init__(self, config: Config, worker: str) -> None:
        self.config = config
        self.report = LoadReport()
        self._quarantine = Quarantine(config.home, config.settings.plugins.max_crashes)
        self.activity_log = ActivityLog(activity_log_folder(config.home), worker)
        self._implementations: dict[str, list[_Implementation]] = {}
        self._loaded: dict[str, object] = {}
        self._names: dict[str, str] = {}
        self._pins: dict[str, Pin] = {}
        self._allowed: dict[str, manifest.PluginManifest | None] = {}
        self._asked: dict[tuple[str, tuple[Any, ...]], tuple[OwnedItem[Any], ...]] = {}

    # Loading ---------------------------------------------------------------------------------------------------

    def load_all(
        self,
        extra: Iterable[object],
        folders: Sequence[Path],
        only: str | None = None,
        *,
        imports: bool = True,
    ) -> None:
        """Load every plugin that is not disabled, not in quarantine and not run by another process. Problems are
        added to the report.

        Without ``imports``, only determine where each plugin runs.
        """
        disabled = self.config.settings.plugins.disabled
        self._pins = read_pins(self.config.home)
        found = discovery.find_candidates(extra, folders)
        register = self._quarantine.update({one.owner: one.version for one in found})
        for candidate in found if only is None else [one for one in found if one.is_named([only])]:
            if candidate.is_named(disabled):
                self._state(candidate, "disabled", "It is named in [plugins] disabled.")
            elif (
                not self._is_quarantined(candidate, register)
                and not self._is_elsewhere(candidate, only)
                and imports
            ):
                self._load(candidate)
        if required := self.config.settings.plugins.required:
            names = (name for state in self.report.loaded for name in (state.owner, state.name))
            there = {discovery.normal_name(name) for name in names}
            self.report.missing = tuple(name for name in required if discovery.normal_name(name) not in there)

    def _is_quarantined(self, candidate: discovery.Candidate, register: QuarantineRegister) -> bool:
        held = register.find(candidate.owner, candidate.version)
        if held is not None:
            store = self.config.settings.memory.store or DEFAULT_STORE
            instead = (
                "name another store in [memory] store" if candidate.owner == store else "remove or disable it"
            )
            cure = f'Correct it, then run: "trunkline plugins release {candidate.name}". Or {instead}.'
            self._unusable(candidate, "quarantined", held.reason, cure)
        return held is not None

    def _is_elsewhere(self, candidate: discovery.Candidate, only: str | None) -> bool:
        """Report whether the plugin runs in a separate process, or is configured to do so and cannot."""
        try:
            apart = isolation.is_isolated(candidate, self.config, self._pins)
            bound = isolation.worker_bound_hooks(candidate) if apart else ()
        except PluginError as error:
            self._unusable(candidate, "refused", error.sentence, error.hint)
            return True
        if bound:
            self._unusable(candidate, "refused", *isolation.isolation_refusal(bound))
        elif apart and only is None:
            self._state(candidate, "isolated", "It runs in a process of its own.")
        return bool(bound) or (apart and only is None)

    def _load(self, candidate: discovery.Candidate) -> None:
        seconds = self.config.settings.plugins.import_timeout
        began = time.monotonic()
        try:
            self._refuse_writable(candidate)
            self._check_manifest(candidate)
            # what a plugin prints must not appear in a command's output
            with redirect_stdout(sys.stderr), self.activity_log.recording(candidate.owner, "import"):
                plugin = candidate.load() if candidate.is_imported else import_within(seconds, candidate.load)
        except ImportTimeout as error:
            self._unusable(candidate, "failed", error.sentence, error.hint)
            self._quarantine.add(candidate.owner, candidate.version, error.sentence)
        except TrunklineError as error:
            self._unusable(candidate, "failed", error.sentence, error.hint)
        except Exception as error:
            failed = error.error if isinstance(error, ImportFailed) else error
            log.debug("plugin %s could not be imported", candidate.owner, exc_info=True)
            if outdated := describe_outdated_use(failed):
                self._unusable(candidate, "refused", outdated, HINT)
            else:
                reason = f"Its import failed: {_error_text(failed)}"
                self._unusable(candidate, "failed", reason, "Correct or remove it.")
        else:
            self._warn_slow_import(candidate, time.monotonic() - began)
            self._register(candidate, plugin)

    def _register(self, candidate: discovery.Candidate, plugin: object) -> None:
        try:
            self._refuse_second_owner(plugin)
            found = candidate.validate(plugin)
            hooks = tuple(one.hook for one in found)
            manifest.check_hooks(self._allowed[candidate.owner], hooks)
        except PluginError as error:
            self._unusable(candidate, "refused", error.sentence, error.hint, plugin)
        except Exception as error:
            self._unusable(
                candidate, "refused", f"Its hooks cannot be used: {_error_text(error)}", "", plugin
            )
        else:
            self._loaded[candidate.owner] = plugin
            self._names[candidate.owner] = candidate.name
            for one in found:
                function = _Implementation(
                    candidate.owner, getattr(plugin, one.name), one.arguments, one.rank
                )
                self._implementations.setdefault(one.hook, []).append(function)
            self._state(candidate, "loaded", hooks=hooks)

    def _refuse_second_owner(self, plugin: object) -> None:
        owner = next((owner for owner, other in self._loaded.items() if other is plugin), None)
        if owner is not None:
            raise PluginError(
                f"It is the same object as the plugin {owner}.", hint="Remove one of the two entry points."
            )

    def _check_manifest(self, candidate: discovery.Candidate) -> None:
        pin = self._pins.get(
            candidate.owner.partition(":")[0]
        )  # a pin applies to every plugin of the distribution
        self._allowed[candidate.owner] = manifest.check_agreed(
            candidate.owner, candidate.manifest, pin.agreed if pin else None
        )

    def _warn_slow_import(self, candidate: discovery.Candidate, seconds: float) -> None:
        if seconds > SLOW_IMPORT:
            log.warning(
                "the import of plugin %s took %.1f s, which every start waits for", candidate.owner, seconds
            )

    def _refuse_writable(self, candidate: discovery.Candidate) -> None:
        settings = self.config.settings
        writable = (settings.tools.workspaces, settings.runtime.memory_root)
        if candidate.owner.startswith("file:") and (
            folder := file_plugins.writable_folder_of(Path(candidate.where), writable)
        ):
            raise PluginError(
                f"It lies in {folder}, where agents can write, so its code cannot be trusted.",
                hint="Point runtime.tool_sources to a folder that only you can write to.",
            )

    def _unusable(
        self,
        candidate: discovery.Candidate,
        status: Any,
        reason: str,
        hint: str,
        plugin: object | None = None,
    ) -> None:
        sentence = f"{reason.rstrip('.')}."
        log.warning("plugin %s is not used (%s): %s %s", candidate.owner, candidate.where, sentence, hint)
        self._state(candidate, status, reason, hint, _guards_of(candidate, plugin))

    def _state(
        self,
        candidate: discovery.Candidate,
        status: Any,
        reason: str = "",
        hint: str = "",
        hooks: tuple[str, ...] = (),
    ) -> None:
        allowed = self._allowed
        asks = (
            allowed[candidate.owner] if candidate.owner in allowed else manifest.declared(candidate.manifest)
        )
        state = PluginState(
            candidate.owner,
            candidate.name,
            candidate.version,
            candidate.where,
            status,
            reason,
            hint,
            hooks,
            asks,
        )
        self.report.plugins.append(state)

    # Hook calls ------------------------------------------------------------------------------------------------

    def collect(self, hook: str, **arguments: Any) -> tuple[OwnedItem[Any], ...]:
        """Return all items that the implementations of a declaring hook yield. Each implementation is called once;
        later calls return the same objects.

        A problem of an implementation is added to the report, and only the items of that implementation are lost. A
        broken guard is replaced by an object that refuses every call.
        """
        rule = HOOK_RULES[hook]
        asked = (hook, tuple(sorted(arguments.items())))
        if asked not in self._asked:
            found: list[OwnedItem[Any]] = []
            for implementation in self._in_order(hook, ranked=rule.ranked):
                found += self._collect_from(hook, rule, implementation, arguments, found)
            self._asked[asked] = tuple(found) + self._stand_ins(hook)
        return self._asked[asked]

    def first(self, hook: str, *, failed: Callable[[str], Any] | None = None, **arguments: Any) -> Any:
        """Return the first valid answer of a deciding hook that is not None; None when no implementation decides.

        An implementation that fails is skipped, unless ``failed`` is given: then its result for the owner is the
        answer.
        """
        for implementation in self._in_order(hook, ranked=True):
            owner = implementation.owner
            try:
                answer = self._call(implementation, arguments)
            except (Exception, SystemExit) as error:
                complaint: str | None = f"it failed: {_error_text(error)}"
            else:
                if answer is None:
                    continue
                complaint = answer_problem(hook, answer, arguments)
            if complaint is None:
                return answer
            self._note(owner, hook, complaint)
            if failed is not None:
                return failed(owner)
        return None

    def _collect_from(
        self,
        hook: str,
        rule: HookRule,
        implementation: "_Implementation",
        arguments: dict[str, Any],
        before: list[OwnedItem[Any]],
    ) -> list[OwnedItem[Any]]:
        owner = implementation.owner
        try:
            result = self._call(implementation, arguments)
            items = _listed(result, rule)
            for item in items:
                if complaint := rule.check(item) or self._undeclared(owner, hook, item):
                    raise PluginError(f"it yields {_item_text(item)}, which {complaint}.")
        except PluginError as error:
            self._note(owner, hook, error.sentence)
            return []
        except TrunklineError as error:
            self._note(owner, hook, " ".join(filter(None, (error.sentence, error.hint))))
            return []
        except (Exception, SystemExit) as error:
            log.debug("plugin %s failed in %s", owner, hook, exc_info=True)
            self._note(owner, hook, describe_outdated_use(error) or f"it failed: {_error_text(error)}")
            return []
        return self._without_duplicates(hook, rule, owner, items, before)

    def _undeclared(self, owner: str, hook: str, item: Any) -> str | None:
        return (
            manifest.effect_problem(self._allowed[owner], item.spec.effect)
            if hook == "trunkline_tools"
            else None
        )

    def _without_duplicates(
        self, hook: str, rule: HookRule, owner: str, items: list[Any], before: list[OwnedItem[Any]]
    ) -> list[OwnedItem[Any]]:
        if rule.key is None:
            return [OwnedItem(owner, item) for item in items]
        taken = {rule.key(other.item): other.owner for other in reversed(before)}
        kept: list[OwnedItem[Any]] = []
        for item in items:
            name = rule.key(item)
            if name in taken:
                whose = (
                    "twice by itself" if taken[name] == owner else f"already by {taken[name]}, which keeps it"
                )
                self._note(owner, hook, f"the {rule.noun} {name!r} of {owner} is declared {whose}.")
            else:
                taken[name] = owner
                kept.append(OwnedItem(owner, item))
        return kept

    def _call(self, implementation: "_Implementation", arguments: dict[str, Any]) -> Any:
        owner = implementation.owner
        known = {"settings": self.settings_of(owner)} | arguments
        with self.activity_log.recording(owner, "hook"):
            return implementation.function(*(known[name] for name in implementation.arguments))

    def settings_of(self, owner: str) -> ScopedPluginSettings:
        """Return the configuration that the owner's hooks receive."""
        return ScopedPluginSettings(self.config, self._names[owner], _Declared(self, owner))

    def _in_order(self, hook: str, *, ranked: bool) -> "Sequence[_Implementation]":
        """Return the implementations in load order. With ``ranked``, those marked tryfirst come first and those
        marked trylast last.
        """
        found = self._implementations.get(hook, ())
        return sorted(found, key=lambda implementation: implementation.rank) if ranked else found

    def _stand_ins(self, hook: str) -> tuple[OwnedItem[Any], ...]:
        if hook not in GUARD_HOOKS:
            return ()
        broken = [guard for guard in self.report.broken_guards if guard.hook == hook]
        return tuple(OwnedItem(guard.owner, fail_closed_guard(guard)) for guard in broken)

    def _note(self, owner: str, hook: str, reason: str) -> None:
        log.warning("plugin %s, %s: %s", owner, hook, reason)
        self.report.add_problem(owner, hook, reason)


class _Declared(Sequence[ConfigSection]):
    """The sections that an owner declares. They are collected when a hook first reads a section."""

    def __init__(self, relay: HookRunner, owner: str) -> None:
        self._relay = relay
        self._owner = owner

    def _sections(self) -> list[ConfigSection]:
        return [
            section.item
            for section in self._relay.collect("trunkline_config")
            if section.owner == self._owner
        ]

    def __iter__(self) -> Iterator[ConfigSection]:
        return iter(self._sections())

    def __getitem__(self, index: Any) -> Any:
        return self._sections()[index]

    def __len__(self) -> int:
        return len(self._sections())


def _guards_of(candidate: discovery.Candidate, plugin: object | None) -> tuple[str, ...]:
    """Return the guard hooks of an unusable plugin, found in its object or, without an object, in its source."""
    try:
        seen = candidate.text() if plugin is None else dir(plugin)
    except Exception:
        log.warning("it cannot be seen whether the plugin %s guards anything", candidate.owner, exc_info=True)
        return ()
    return tuple(sorted(hook for hook in GUARD_HOOKS if hook in seen))


def _listed(result: Any, rule: HookRule) -> list[Any]:
    if result is None:
        return []
    if isinstance(result, str | bytes | dict) or not hasattr(type(result), "__iter__"):
        raise PluginError(f"it returned {_item_text(result)}; return a list of {rule.noun} objects.")
    items = list(islice(result, MOST_ITEMS + 1))
    if len(items) > MOST_ITEMS:
        raise PluginError(f"it yields more than {MOST_ITEMS} items.")
    return items


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _item_text(item: object) -> str:
    return f"{repr(item)[:80]} ({type(item).__name__})"
