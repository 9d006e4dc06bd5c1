"""Decides which plugins run in a separate process, and which cannot. Reads settings and files; imports no plugin."""

from collections.abc import Mapping

from trunkline.config import Config
from trunkline.contracts.blocks.paths import is_block_name
from trunkline.contracts.hooks import PROJECT
from trunkline.errors import PluginError
from trunkline.plugins import manifest
from trunkline.plugins.discovery import Candidate
from trunkline.plugins.hook_rules import HOOK_RULES
from trunkline.plugins.pins import Pin

ISOLATABLE_HOOKS = frozenset(
    {"trunkline_tools", "trunkline_channels", "trunkline_config", "trunkline_messages"}
)
"""The hooks that also work in a separate process."""

DECIDING = (
    "trunkline_stop_turn",
    "trunkline_select_model",
    "trunkline_route",
    "trunkline_render",
    "trunkline_rank",
)


def is_isolated(candidate: Candidate, config: Config, pins: Mapping[str, Pin]) -> bool:
    """Report whether the plugin runs in a separate process: the configuration says so, or the person who installed
    the plugin agreed to a manifest that asks for it.

    Raises:
        PluginError: the plugin's name cannot be part of a subject, so no request could reach the plugin.
    """
    apart = _should_isolate(candidate, config, pins)
    if apart and not is_block_name(candidate.name):
        raise PluginError(
            f"It runs in a process of its own, but a subject cannot contain its name {candidate.name!r}.",
            hint="Name its entry point with a-z, 0-9 and -, at most 32 characters.",
        )
    return apart


def _should_isolate(candidate: Candidate, config: Config, pins: Mapping[str, Pin]) -> bool:
    names = (candidate.name, candidate.owner)
    written = any("isolation" in (config.sources.get(("plugins", name)) or {}) for name in names)
    if written:
        return config.plugin_host(*names).is_isolated
    pin = pins.get(candidate.owner.partition(":")[0])  # a pin applies to every plugin of the distribution
    return pin is not None and pin.agreed is not None and pin.agreed.isolation == "process"


def worker_bound_hooks(candidate: Candidate) -> tuple[str, ...]:
    """Return the hooks in the plugin's manifest, or otherwise in its source, that work only inside a worker."""
    text = candidate.manifest()
    if text is not None:
        declared = {f"{PROJECT}_{hook}" for hook in manifest.parse_manifest(text, candidate.owner).hooks}
        return tuple(sorted(declared - ISOLATABLE_HOOKS))
    source = candidate.text()
    return tuple(
        sorted(hook for hook in (*HOOK_RULES, *DECIDING) if hook not in ISOLATABLE_HOOKS and hook in source)
    )


def isolation_refusal(hooks: tuple[str, ...]) -> tuple[str, str]:
    """Return the reason and the remedy for a plugin that cannot run in a separate process."""
    return (
        f"It is set to run in its own process, but {', '.join(hooks)} works only inside a worker, where what it yields "
        "takes part in every turn or request.",
        'Remove isolation = "process", or split the plugin: tools and channels can run in their own process.',
    )
