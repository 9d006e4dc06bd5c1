"""Opens files below one folder and never outside it, even if somebody swaps links meanwhile.

``Folder`` holds the folder by its handle, and every file tool opens its files through it. ``path_rules`` checks the
text of a path. ``scope`` holds the roots below which absolute paths are allowed.
"""

from trunkline._util.paths.folder import MAX_DEPTH, Folder, FolderEntry, Kind, open_beneath
from trunkline._util.paths.path_rules import (
    GIT,
    MAX_NAME,
    MAX_PATH,
    PROTECTED_FILES,
    PROTECTED_NAMES,
    PathRefused,
    check_path,
    is_absolute_path,
    is_protected,
)
from trunkline._util.paths.repositories import SETTINGS, hides_password, is_bare
from trunkline._util.paths.scope import WORKSPACE_ONLY, PathScope, real_path

__all__ = [
    "GIT",
    "MAX_DEPTH",
    "MAX_NAME",
    "MAX_PATH",
    "PROTECTED_FILES",
    "PROTECTED_NAMES",
    "SETTINGS",
    "WORKSPACE_ONLY",
    "Folder",
    "FolderEntry",
    "Kind",
    "PathRefused",
    "PathScope",
    "check_path",
    "hides_password",
    "is_absolute_path",
    "is_bare",
    "is_protected",
    "open_beneath",
    "real_path",
]
