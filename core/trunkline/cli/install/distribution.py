"""A distribution as it describes itself, in the metadata of a wheel or in a project's ``pyproject.toml``."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, canonicalize_name

from trunkline._util.text import one_line
from trunkline.contracts.hooks import PROJECT
from trunkline.errors import PluginError
from trunkline.plugins.manifest import PluginManifest

SCRIPTS = ("console_scripts", "gui_scripts")
"""The groups of entry points that become programs."""

_HOOK = re.compile(rf"^\s*def {PROJECT}_(\w+)", re.MULTILINE)
_EFFECT = re.compile(r"""effect\s*=\s*["'](\w+)["']""")


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionInfo:
    """The metadata of a distribution, read before any of its code has run. ``points`` are its entry points by group and
    name. ``asks`` is its manifest, None without one. ``seen`` are the hooks and effects that its source contains."""

    name: str
    version: str
    summary: str
    requires: tuple[str, ...]
    entry_points: dict[str, dict[str, str]]
    manifest: PluginManifest | None
    found_in_source: PluginManifest

    @property
    def is_plugin(self) -> bool:
        """Report whether Trunkline would load it."""
        return PROJECT in self.entry_points

    @property
    def packages(self) -> set[str]:
        """The top names that its entry points for Trunkline import."""
        return plugin_packages(self.entry_points)


def valid_name(name: object, where: str) -> str:
    """A distribution's name in its normal spelling. Raises PluginError for what is none: a name with a line break could
    pass for further lines of what a person is shown."""
    try:
        return canonicalize_name(str(name or ""), validate=True)
    except InvalidName:
        raise PluginError(
            f"{one_line(where)} names a distribution {one_line(repr(name))}, which is no name.",
            hint="A name consists of letters, digits, dots, underscores and hyphens. Report this to its author.",
        ) from None


def plugin_packages(points: dict[str, dict[str, str]]) -> set[str]:
    """The top names that the entry points for Trunkline import."""
    modules = points.get(PROJECT, {}).values()
    return {point.partition(":")[0].strip().partition(".")[0] for point in modules}


def scan_source(source: str) -> PluginManifest:
    """The hooks and effects that stand in a source. A hint for people: code can hide both."""
    effects = [effect for effect in ("read", "write", "send", "exec") if effect in _EFFECT.findall(source)]
    return PluginManifest(hooks=tuple(sorted(set(_HOOK.findall(source)))), effects=tuple(effects))  # type: ignore[arg-type]


def normal_requirements(texts: Iterable[str]) -> set[str]:
    """Requirements in one spelling, without those of optional extras, so that two lists of them can be compared."""
    found = set()
    for text in texts:
        try:
            need = Requirement(text)
        except InvalidRequirement:
            found.add(text)
            continue
        if "extra ==" not in str(need.marker or ""):
            found.add(str(need))
    return found
