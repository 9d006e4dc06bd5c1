"""Changes settings in ``trunkline.toml``. The result is checked before the file is replaced."""

from collections.abc import Iterable, Mapping
from typing import Any

from trunkline._util.regular_file import read_regular
from trunkline.config import Config, InvalidConfig, load_config
from trunkline.config.editor import apply_settings, replace_file
from trunkline.contracts.plugins.extensions import ConfigSection
from trunkline.errors import ConfigError


class SettingsEditor:
    """Changes the settings of one home. ``sections`` are those that its plugins declare.

    Guarantees: the file is replaced as a whole, and only by settings that can be read. Comments and order are kept.

    Not guaranteed: that a change of the same file by another program at the same moment is kept.
    """

    def __init__(self, config: Config, sections: Iterable[ConfigSection]) -> None:
        self._config = config
        self._sections = tuple(sections)

    def read(self) -> Config:
        """Return the settings that a process would start with now, flags aside. Raises ConfigError."""
        return load_config(self._config.home, environ=self._config.environ)

    def change(self, changes: Mapping[str, Any]) -> Config:
        """Set dotted keys (``{"adapters.openai.model": "gpt-5"}``), and return the settings as they are then. A
        ``Secret`` is written as its reference. None removes the key.

        Raises:
            InvalidConfig: a value is not valid. The file is unchanged.
            ConfigError: a plugin refuses a value, or the file cannot be read or written. It is unchanged.
        """
        from tomlkit.exceptions import TOMLKitError

        file = self._config.file
        try:
            before = read_regular(file).decode("utf-8-sig") if file.exists() else ""
            text = apply_settings(before, changes)
            after = load_config(self._config.home, environ=self._config.environ, text=text)
            self._check_sections(after, changes)
            replace_file(file, text)
        except TOMLKitError as error:
            raise ConfigError(
                f"{file} is not valid TOML: {error}.", hint="Correct that line first."
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise ConfigError(f"{file} cannot be written: {reason}.", hint="Nothing was changed.") from error
        return after

    def _check_sections(self, config: Config, changes: Mapping[str, Any]) -> None:
        """Raise ConfigError if a change makes a plugin's section invalid: while it is in the file, most commands fail.
        Settings that are still missing do not count.
        """
        changed = {tuple(key.split(".")[:2]) for key in changes}
        for one in self._sections:
            if config.section_key(one.table, one.name) in changed:
                try:
                    config.section(one.table, one.name, one.type)
                except InvalidConfig as error:
                    if any(_is_changed(problem.key, changes) for problem in error.problems):
                        raise


def _is_changed(key: str, changes: Mapping[str, Any]) -> bool:
    """Report whether a key, or a table that has it, is changed. A reference to a secret is a table in the file."""
    return any(key == one or key.startswith(f"{one}.") for one in changes)
