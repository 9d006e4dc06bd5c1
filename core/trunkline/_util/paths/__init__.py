"""Opening files below a folder and nowhere else, whatever the path says and whoever swaps links meanwhile.

``names``
    what the text of a path may be: no ``..``, no names that secrets go by.
``reach``
    how far absolute paths lead, for a block whose scope is wider than its own folder.
``folder``
    a folder held by its handle; every file tool opens what it opens here.
``repositories``
    which folders are bare git repositories, and which settings of git hold a password.
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
