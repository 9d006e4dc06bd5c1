"""Structured files from others: TOML and JSON within limits, with the line of an error."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.json_file import read_json as read_json
    from trunkline._util.toml import SettingsFileError as SettingsFileError
    from trunkline._util.toml import read_settings as read_settings
    from trunkline._util.toml import read_toml as read_toml
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
