"""Opens files below one folder and never outside it, even if links are replaced concurrently.

``Folder`` holds the folder's file descriptor, and every file tool opens its files through it. ``path_rules`` checks
the text of a path. ``scope`` contains the roots below which absolute paths are permitted.
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
