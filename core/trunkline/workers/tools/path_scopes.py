"""The scopes of a call's paths: the scope of a path, and the folders that are open to a call with given scopes."""

from collections.abc import Collection, Iterator
from pathlib import Path

from trunkline._util.paths import WORKSPACE_ONLY, PathScope, is_absolute_path, real_path
from trunkline.config import Config
from trunkline.contracts.policies.messages import FileScope
from trunkline.home.paths import Home

KERNEL = (Path("/proc"), Path("/sys"), Path("/dev"))
"""Folders in which processes expose their secrets, and whose entries are not files."""

KEYS = (".ssh", ".gnupg")
"""Folders in a person's home directory that contain only keys."""


def scopes_of(path: str, workspace: Path) -> frozenset[FileScope]:
    """Return the scopes of a path: the scope of the name, and that of the target when the path is a link.

    Raises:
        PathRefused: the text is not a path, or names a protected file.
    """
    if not is_absolute_path(path):
        return frozenset({"block"})
    return frozenset(_scope(real_path(path, follow=follow), workspace) for follow in (True, False))


def _scope(real: str, workspace: Path) -> FileScope:
    for scope, folder in (("block", workspace), ("workspace", workspace.parent)):
        if Path(real).is_relative_to(real_path(str(folder))):
            return "workspace" if scope == "workspace" else "block"
    return "system"


def reach_of(scopes: Collection[FileScope], config: Config, home: Home) -> PathScope:
    """Return the reach of a call that may use these scopes. Trunkline's own files and key folders are always closed."""
    if not {"workspace", "system"}.intersection(scopes):
        return WORKSPACE_ONLY
    roots = []
    closed = list(_closed(config, home))
    if "workspace" in scopes:
        roots.append(home.workspaces)
    if "system" in scopes:
        roots.append(Path("/"))
        if "workspace" not in scopes:
            closed.append(home.workspaces)
    return PathScope(tuple(roots), tuple(closed))


def _closed(config: Config, home: Home) -> Iterator[Path]:
    settings = config.settings
    yield from (home.path, home.memory, config.file, *settings.runtime.tool_sources, *KERNEL)
    yield from (Path.home() / name for name in KEYS)
    if settings.bus.credentials_file is not None:
        yield settings.bus.credentials_file
