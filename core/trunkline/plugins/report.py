"""The result of loading each plugin, for ``trunkline plugins list``, ``trunkline doctor`` and the workers."""

from dataclasses import dataclass, field
from typing import Literal

from trunkline.plugins.manifest import PluginManifest

GUARD_HOOKS = frozenset(
    {
        "trunkline_tool_middleware",
        "trunkline_authenticators",
        "trunkline_admission_rules",
        "trunkline_memory_rules",
        "trunkline_model_middleware",
    }
)
"""The hooks whose objects are guards. When a guard is broken, every call that it guards is refused."""


@dataclass(frozen=True, slots=True)
class PluginState:
    """The state of one plugin.

    ``owner`` is its distribution (or ``file:name``), ``name`` its entry point, ``where`` the module or file.
    ``failed``: the import failed. ``refused``: it violates the rules of hooks. ``disabled``: the configuration
    disables it, so it was not imported. ``quarantined``: it repeatedly crashed its worker, so it was not imported.
    ``isolated``: it runs in a separate process. ``hooks`` are the hooks that it implements; for an unusable plugin,
    the guard hooks found in it. ``manifest`` is what it asks for; None if it declares nothing.
    """

    owner: str
    name: str
    version: str
    where: str
    status: Literal["loaded", "failed", "refused", "disabled", "quarantined", "isolated"]
    reason: str = ""
    hint: str = ""
    hooks: tuple[str, ...] = ()
    manifest: PluginManifest | None = None


@dataclass(frozen=True, slots=True)
class HookProblem:
    """A hook or an item of a loaded plugin that cannot be used. The rest of the plugin can."""

    owner: str
    hook: str
    reason: str


@dataclass(frozen=True, slots=True)
class BrokenGuard:
    """A guard that cannot be used. Every call that it guards is refused."""

    owner: str
    hook: str
    reason: str


@dataclass(slots=True)
class LoadReport:
    """All plugins, and the problems found so far. A hook that was not called yet has reported no problem.

    ``missing`` names the plugins of ``[plugins] required`` that are not loaded.
    """

    plugins: list[PluginState] = field(default_factory=list)
    troubles: list[HookProblem] = field(default_factory=list)
    missing: tuple[str, ...] = ()

    @property
    def loaded(self) -> tuple[PluginState, ...]:
        """The plugins that are loaded."""
        return tuple(state for state in self.plugins if state.status == "loaded")

    @property
    def unusable(self) -> tuple[PluginState, ...]:
        """The plugins that failed, were refused, or are in quarantine."""
        return tuple(state for state in self.plugins if state.status in ("failed", "refused", "quarantined"))

    @property
    def broken_guards(self) -> tuple[BrokenGuard, ...]:
        """The guards that are installed and cannot be used."""
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
        """Add a problem, unless the report contains it."""
        trouble = HookProblem(owner, hook, reason)
        if trouble not in self.troubles:
            self.troubles.append(trouble)
