"""The manifest ``trunkline-plugin.toml``, in which a plugin declares what it uses. It is read without importing code.

The program shows the manifest to the person who installs the plugin. The platform enforces ``hooks`` and ``effects``.
It does not enforce ``network``, ``files``, ``secrets`` and ``programs``, because code in the worker's process could
bypass any check; ``isolation = "process"`` exists for that purpose.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Literal

import msgspec

from trunkline.contracts.hooks import PROJECT
from trunkline.contracts.tools.messages import Effect
from trunkline.errors import PluginError

MANIFEST_FILE = f"{PROJECT}-plugin.toml"
"""The name of the file, in the package of the entry point."""


class PluginManifest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The declarations of a plugin's manifest.

    ``hooks`` are the hooks that the plugin implements, without their prefix. ``effects`` are the effects of its
    tools. ``network`` lists the hosts that it connects to. ``files`` lists the places outside of workspaces and
    memory that it reads or writes. ``secrets`` lists the environment variables from which it takes keys. ``programs``
    lists the programs that it runs. ``isolation`` is the process that it asks for: a worker's or a separate one.
    """

    hooks: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    network: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    isolation: Literal["none", "process"] = "none"

    def additions_to(self, other: "PluginManifest") -> list[str]:
        """Return the declarations that ``other`` lacks, as texts for people. Less isolation is an addition."""
        more = [
            f"{what} {name}"
            for what in ("hooks", "effects", "network", "files", "secrets", "programs")
            for name in getattr(self, what)
            if name not in getattr(other, what)
        ]
        bare = self.isolation == "none" and other.isolation == "process"
        return more + (["isolation none"] if bare else [])


@lru_cache(maxsize=256)
def parse_manifest(text: str, owner: str) -> PluginManifest:
    """Parse and validate the text of a manifest. Each text is parsed once per process. Raises PluginError, which
    states the problem.
    """
    try:
        return msgspec.toml.decode(text, type=PluginManifest)
    except msgspec.DecodeError as error:
        raise PluginError(
            f"The {MANIFEST_FILE} of {owner} cannot be understood: {error}.",
            hint=f"Correct it. The allowed keys are: {', '.join(PluginManifest.__struct_fields__)}.",
        ) from error


def declared(manifest: Callable[[], str | None]) -> PluginManifest | None:
    """Return the manifest of a plugin that is not loaded; None without a valid one. Raises nothing."""
    try:
        text = manifest()
        return None if text is None else parse_manifest(text, "the plugin")
    except (OSError, PluginError):
        return None


def check_agreed(
    owner: str, manifest: Callable[[], str | None], agreed: "PluginManifest | None"
) -> PluginManifest | None:
    """Return the plugin's manifest, or None without one, after comparing it with the manifest that was agreed to.

    Args:
        agreed: the manifest that a person agreed to at the installation; None when the plugin had none, or when the
            plugin was installed in another way.

    Raises:
        PluginError: the manifest is not valid, or it declares more than was agreed to.
    """
    text = manifest()
    asks = None if text is None else parse_manifest(text, owner)
    if agreed is None:
        return asks
    cure = f'Review it and agree again: "trunkline plugins install {owner}".'
    if asks is None:
        raise PluginError(
            f"It no longer declares its permissions: its {MANIFEST_FILE} is missing.", hint=cure
        )
    if more := asks.additions_to(agreed):
        raise PluginError(f"It requests more than was agreed to: {', '.join(more)}.", hint=cure)
    return asks


def check_hooks(asks: PluginManifest | None, hooks: Iterable[str]) -> None:
    """Raise PluginError when a plugin implements a hook that its manifest does not declare."""
    if asks is None:
        return
    short = [hook.removeprefix(f"{PROJECT}_") for hook in hooks]
    hidden = sorted(set(short) - set(asks.hooks))
    if hidden:
        raise PluginError(
            f"It implements {', '.join(hidden)}, which its {MANIFEST_FILE} does not declare.",
            hint=f"Add to its hooks there, or remove the plugin: {', '.join(hidden)}.",
        )


def effect_problem(asks: PluginManifest | None, effect: Effect) -> str | None:
    """Return the problem with a tool of this effect, as the end of a sentence; None when the manifest declares the
    effect."""
    if asks is None or effect in asks.effects:
        return None
    return f"has the effect {effect!r}, which the plugin's {MANIFEST_FILE} does not declare"
