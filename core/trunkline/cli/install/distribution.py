"""The metadata of a distribution, from a wheel or from a project's ``pyproject.toml``."""

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
"""The groups of entry points that are installed as programs."""

_HOOK = re.compile(rf"^\s*def {PROJECT}_(\w+)", re.MULTILINE)
_EFFECT = re.compile(r"""effect\s*=\s*["'](\w+)["']""")


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionInfo:
    """The metadata of a distribution, read before any of its code runs. ``entry_points`` are by group and name.
    ``manifest`` is None without one. ``source_manifest`` lists the hooks and effects that its source contains.
    """

    name: str
    version: str
    summary: str
    requires: tuple[str, ...]
    entry_points: dict[str, dict[str, str]]
    manifest: PluginManifest | None
    source_manifest: PluginManifest

    @property
    def is_plugin(self) -> bool:
        """Report whether Trunkline would load the distribution."""
        return PROJECT in self.entry_points

    @property
    def packages(self) -> set[str]:
        """The top-level packages that its entry points for Trunkline import."""
        return plugin_packages(self.entry_points)


def valid_name(name: object, where: str) -> str:
    """Return a distribution's name in its normalized spelling. Raises PluginError for an invalid name: a name with a
    line break could imitate further lines of the text that a person is shown.
    """
    try:
        return canonicalize_name(str(name or ""), validate=True)
    except InvalidName:
        raise PluginError(
            f"{one_line(where)} names a distribution {one_line(repr(name))}, which is not a valid name.",
            hint="A name consists of letters, digits, dots, underscores and hyphens. Report this to its author.",
        ) from None


def plugin_packages(points: dict[str, dict[str, str]]) -> set[str]:
    """Return the top-level packages that the entry points for Trunkline import."""
    modules = points.get(PROJECT, {}).values()
    return {point.partition(":")[0].strip().partition(".")[0] for point in modules}


def scan_source(source: str) -> PluginManifest:
    """Return the hooks and effects that occur in a source. This is only a hint, since code can hide both."""
    effects = [effect for effect in ("read", "write", "send", "exec") if effect in _EFFECT.findall(source)]
    return PluginManifest(hooks=tuple(sorted(set(_HOOK.findall(source)))), effects=tuple(effects))  # type: ignore[arg-type]


def normal_requirements(texts: Iterable[str]) -> set[str]:
    """Return requirements in a normalized spelling, without those of extras, so that two lists can be compared."""
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
