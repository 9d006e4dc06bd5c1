"""Paths that a program or a model chose: opened below a folder, and protected if they hold secrets."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.paths import MAX_DEPTH as MAX_DEPTH
    from trunkline._util.paths import SETTINGS as SETTINGS
    from trunkline._util.paths import hides_password as hides_password
    from trunkline._util.paths import is_absolute_path as is_absolute_path
    from trunkline._util.paths import is_bare as is_bare
    from trunkline._util.paths import is_protected as is_protected
    from trunkline._util.paths import open_beneath as open_beneath
    from trunkline._util.private_folders import make_private as make_private
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
