"""The result of loading each plugin, for ``trunkline plugins list``, ``trunkline doctor`` and the workers."""

from dataclasses import dataclass, field
from typing import Literal

GUARD_HOOKS = frozenset(
    {
        "trunkline_tool_middleware",
        "trunkline_authenticators",
        "trunkline_admission_rules",
        "trunkline_memory_rules",
        "trunkline_model_middleware",
    }
)
"""The hooks whose objects guard something. When one is broken, what it guards is refused."""


@dataclass(frozen=True, slots=True)
class PluginState:
    """One plugin.

    ``owner`` is its distribution (or ``file:name``), ``name`` its entry point, ``where`` the module or file.
    ``failed``: it could not be imported. ``refused``: it breaks the rules of hooks. ``disabled``: by configuration,
    so it was not imported. ``quarantined``: it crashed its worker again and again, so neither. ``isolated``: it runs in
    a process of its own. ``hooks`` are those it implements; of one that failed, those it is seen to guard with.
    """

    owner: str
    name: str
    version: str
    where: str
    status: Literal["loaded", "failed", "refused", "disabled", "quarantined", "isolated"]
    reason: str = ""
    hint: str = ""
    hooks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HookProblem:
    """A hook or an item of a loaded plugin that cannot be used, while the rest of the plugin can."""

    owner: str
    hook: str
    reason: str


@dataclass(frozen=True, slots=True)
class BrokenGuard:
    """A guard that cannot do its work, so that what it guards is refused."""

    owner: str
    hook: str
    reason: str


@dataclass(slots=True)
class LoadReport:
    """All plugins and all troubles so far; hooks that were not asked yet have had no chance to be one.

    ``missing`` names those of ``[plugins] required`` that are not loaded.
    """

    plugins: list[PluginState] = field(default_factory=list)
    troubles: list[HookProblem] = field(default_factory=list)
    missing: tuple[str, ...] = ()

    @property
    def loaded(self) -> tuple[PluginState, ...]:
        """The plugins that take part."""
        return tuple(state for state in self.plugins if state.status == "loaded")

    @property
    def unusable(self) -> tuple[PluginState, ...]:
        """The plugins that failed, were refused, or are in quarantine."""
        return tuple(state for state in self.plugins if state.status in ("failed", "refused", "quarantined"))

    @property
    def broken_guards(self) -> tuple[BrokenGuard, ...]:
        """The guards that are installed and cannot do their work."""
        unloaded = [
            BrokenGuard(state.owner, hook, state.reason)
            for state in self.unusable
            for hook in state.hooks
            if hook in GUARD_HOOKS
        ]
        troubled = [
            BrokenGuard(trouble.owner, trouble.hook, trouble.reason)
            for trouble in self.troubles
            if trouble.hook in GUARD_HOOKS
        ]
        return tuple(unloaded + troubled)

    def add_problem(self, owner: str, hook: str, reason: str) -> None:
        """Note a trouble, once."""
        trouble = HookProblem(owner, hook, reason)
        if trouble not in self.troubles:
            self.troubles.append(trouble)
