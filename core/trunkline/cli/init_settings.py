"""The settings that ``trunkline init`` writes to ``trunkline.toml``. Each setting is validated and saved at once."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trunkline.config import Config, Secret, load_config
from trunkline.config.editor import write_settings
from trunkline.errors import ConfigError
from trunkline.home.paths import Home

if TYPE_CHECKING:
    from trunkline.cli.init import InitFlags

STARTER_FILE = """\
# The settings of this Trunkline. "trunkline config" shows every one with its value and where it comes from;
# docs/reference/configuration.md says what each means. Secrets stand here by reference only:
#
#   [adapters.openai]
#   api_key = { env = "OPENAI_API_KEY" }
"""

ADDRESS = ("base_url", "url")
"""The names that adapters use for the setting of their server's address."""


class InitSettings:
    """The settings of a home, and the changes of this run."""

    def __init__(self) -> None:
        self._before = load_config()
        self.file: Path = self._before.file
        self._changed: dict[str, Any] = {}
        self._begun = False

    def config(self) -> Config:
        """Return the current settings."""
        return load_config(self._before.home, environ=self._before.environ)

    # Adapters ------------------------------------------------------------------------------------------------

    @cached_property
    def sections(self) -> dict[str, tuple[str, ...]]:
        """The installed adapters, ready or not, each with the names of its settings."""
        from trunkline.plugins import Plugins

        plugins = Plugins.load(self._before)
        ready = {owned.item.name: tuple[str, ...]() for owned in plugins.models()}
        found = [owned.item for owned in plugins.config_sections() if owned.item.table == "adapters"]
        return ready | {one.name: one.type.__struct_fields__ for one in found}

    def require_adapter(self, adapter: str | None) -> None:
        """Raise ConfigError when the adapter does not exist."""
        if adapter not in (None, "auto") and adapter not in self.sections:
            known = ", ".join(["auto", *sorted(self.sections)])
            raise ConfigError(f"There is no model adapter {adapter!r}.", hint=f"There are: {known}.")

    def address_key(self, adapter: str) -> str | None:
        """Return the key of the adapter's address, or None if it has none."""
        name = next((one for one in ADDRESS if one in self.sections.get(adapter, ())), None)
        return f"adapters.{adapter}.{name}" if name else None

    def current_value(self, key: str) -> str:
        """Return the current value of a setting; for a secret the name of its variable."""
        shown = next((row.value for row in self.config().describe() if row.key == key), "")
        return "" if shown == "None" else _bare(shown).removeprefix("env:")

    # Saving --------------------------------------------------------------------------------------------------

    def save(self, values: dict[str, Any]) -> None:
        """Write the values that differ; None removes a setting. If the result is not valid, the file is left
        unchanged.

        Raises:
            ConfigError: a value is not valid.
        """
        shown = {row.key: _bare(row.value) for row in self.config().describe()}
        changes = {key: value for key, value in values.items() if _shown(value) != shown.get(key, "")}
        self._begin()
        if changes:
            self._write(changes)
            self._changed |= changes

    def save_flags(self, flags: "InitFlags") -> None:
        """Write the values of the flags."""
        wanted: dict[str, Any] = {
            "gateway.default_block": flags.block,
            "runtime.provider_adapter": flags.adapter,
        }
        if flags.adapter not in (None, "auto", "offline"):
            section = f"adapters.{flags.adapter}"
            wanted[self.address_key(flags.adapter) or f"{section}.base_url"] = flags.base_url
            wanted[f"{section}.model"] = flags.model
            wanted[f"{section}.api_key"] = flags.key_env and secret_reference(flags.key_env)
        self.save({key: value for key, value in wanted.items() if value is not None})

    def _begin(self) -> None:
        """Create the home and, if absent, ``trunkline.toml`` with introductory comments."""
        Home.of(self._before).prepare()
        if not self.file.exists():
            self.file.write_text(STARTER_FILE, encoding="utf-8")
            self._begun = True

    def _write(self, changes: dict[str, Any]) -> None:
        before = self.file.read_bytes()
        write_settings(self.file, changes)
        try:
            self.config()
        except ConfigError:
            self.file.write_bytes(before)
            raise

    # Summary -------------------------------------------------------------------------------------------------

    def missing(self) -> list[str]:
        """Return the unset environment variables that the settings of the chosen adapter name."""
        config = self.config()
        section = f"adapters.{config.settings.runtime.provider_adapter}."
        rows = [row for row in config.describe() if row.key.startswith(section)]
        return [_bare(row.value).removeprefix("env:") for row in rows if row.value.endswith(" (not set)")]

    def summary(self) -> str:
        """Return a summary of the changes, one line each."""
        changed = bool(self._changed) or self._begun
        lines = [f"The home folder is {self._before.home}" + ("." if changed else "; nothing to change.")]
        if self._begun:
            lines.append(f"The settings are in {self.file}.")
        return "\n".join([*lines, *(f"{key} = {_shown(value)}" for key, value in self._changed.items())])

    def report(self) -> dict[str, Any]:
        """Return the summary as data, for ``--json``."""
        changed = {key: _shown(value) for key, value in self._changed.items()}
        return {"home": str(self._before.home), "file": str(self.file), "changed": changed}


def secret_reference(name: str) -> Secret:
    """Return a reference to an environment variable.

    Raises:
        ConfigError: the text is not the name of a variable. It may be a key, so the error does not repeat it.
    """
    if not name.isidentifier():
        raise ConfigError(
            "That is not the name of an environment variable.",
            hint="Give the name of the variable, such as OPENAI_API_KEY, not the key itself.",
        )
    return Secret(name)


def _shown(value: Any) -> str:
    if isinstance(value, Secret):
        return f"env:{value.env}"
    return "" if value is None else str(value)


def _bare(shown: str) -> str:
    """Remove the note on whether a variable is set from a value of ``describe``."""
    return shown.removesuffix(" (set)").removesuffix(" (not set)")
