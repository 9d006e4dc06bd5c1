"""The manifest ``trunkline-plugin.toml``, in which a plugin declares what it uses. It is read without importing code.

The file is shown to whoever installs the plugin, and the plugin is held to what can be seen of it here: its hooks and
the effects of its tools. ``network``, ``files``, ``secrets`` and ``programs`` are told to people; code in the worker's
own process could get round any check of them, which is what ``isolation = "process"`` is for.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Literal

import msgspec

from trunkline.contracts.hooks import PROJECT
from trunkline.contracts.tools.messages import Effect
from trunkline.errors import PluginError

MANIFEST_FILE = f"{PROJECT}-plugin.toml"
"""The file's name, in the package that the entry point names."""


class PluginManifest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The declarations of a plugin's manifest.

    ``hooks`` are those it implements, without their prefix; ``effects`` those of its tools; ``network`` the hosts it
    talks to; ``files`` the places outside of workspaces and memory that it reads or writes; ``secrets`` the variables
    it takes keys from; ``programs`` what it runs; ``isolation`` where it wants to run.
    """

    hooks: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    network: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    isolation: Literal["none", "process"] = "none"

    def additions_to(self, other: "PluginManifest") -> list[str]:
        """Return what this manifest declares beyond ``other``, in words for people. Less isolation counts as more."""
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
    """Parse and validate the text of a manifest. Each text is parsed once per process. Raises PluginError, which names
    the fault."""
    try:
        return msgspec.toml.decode(text, type=PluginManifest)
    except msgspec.DecodeError as error:
        raise PluginError(
            f"The {MANIFEST_FILE} of {owner} cannot be understood: {error}.",
            hint=f"Mend it. It may hold: {', '.join(PluginManifest.__struct_fields__)}.",
        ) from error


def check_agreed(
    owner: str, manifest: Callable[[], str | None], agreed: "PluginManifest | None"
) -> PluginManifest | None:
    """Return a plugin's manifest, after checking it against the one that was agreed to; None when the plugin has none.

    Args:
        agreed: What somebody agreed to when it was installed; None when nobody was asked or it declared nothing.

    Raises:
        PluginError: the manifest cannot be understood, or it asks for more than was agreed to.
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
    """Raises PluginError when a plugin implements a hook that it does not declare."""
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
