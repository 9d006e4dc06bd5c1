"""The settings that ``trunkline init`` writes to ``trunkline.toml``. Each setting is validated and saved at once."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trunkline._util.toml import read_toml
from trunkline.config import Config, Secret, load_config
from trunkline.errors import ConfigError
from trunkline.home.paths import Home
from trunkline.plugins.settings_editor import SettingsEditor

if TYPE_CHECKING:
    from trunkline.cli.init import InitFlags
    from trunkline.contracts.plugins.extensions import AdapterSetup, ConfigSection
    from trunkline.plugins import Plugins

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
        ready = {owned.item.name: tuple[str, ...]() for owned in self._plugins.models()}
        return ready | {one.name: one.type.__struct_fields__ for one in self._adapter_sections}

    @cached_property
    def setups(self) -> "dict[str, AdapterSetup]":
        """The needs of the installed adapters, as far as they declare them."""
        return {one.name: one.setup for one in self._adapter_sections if one.setup is not None}

    @cached_property
    def _plugins(self) -> "Plugins":
        from trunkline.plugins import Plugins

        return Plugins.load(self._before)

    @cached_property
    def _adapter_sections(self) -> "list[ConfigSection]":
        sections = [owned.item for owned in self._plugins.config_sections()]
        return [one for one in sections if one.table == "adapters"]

    @cached_property
    def _editor(self) -> SettingsEditor:
        return SettingsEditor(self._before, self._adapter_sections)

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
            self._editor.change(changes)
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
            wanted |= self.further_settings(flags.adapter, flags.further)
            wanted[f"{section}.api_key"] = flags.key_env and secret_reference(flags.key_env)
        self.save({key: value for key, value in wanted.items() if value is not None})

    def further_settings(self, adapter: str | None, further: Iterable[str]) -> dict[str, Any]:
        """Return the settings of an adapter that ``--set`` names, by their dotted key.

        Raises:
            ConfigError: the adapter has no such setting, or it is for a secret.
        """
        found: dict[str, Any] = {}
        for name, _, value in (one.partition("=") for one in further):
            known = [one for one in self.sections.get(adapter or "", ()) if one != "api_key"]
            if name not in known:
                hint = (
                    f"These can be set: {', '.join(known)}." if known else "Name an adapter: --adapter NAME."
                )
                what = (
                    "is a secret: give the name of its variable with --key-env" if name == "api_key" else ""
                )
                raise ConfigError(
                    f"--set {name} {what or f'is no setting of the adapter {adapter}'}.", hint=hint
                )
            found[f"adapters.{adapter}.{name}"] = _value(value)
        return found

    def _begin(self) -> None:
        """Create the home and, if absent, ``trunkline.toml`` with introductory comments."""
        Home.of(self._before).prepare()
        if not self.file.exists():
            self.file.write_text(STARTER_FILE, encoding="utf-8")
            self._begun = True

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


def _value(text: str) -> Any:
    """Return the value that a text is in TOML, otherwise the text."""
    try:
        return read_toml(f"value = {text}")["value"]
    except ValueError:
        return text


def _shown(value: Any) -> str:
    if isinstance(value, Secret):
        return f"env:{value.env}"
    return "" if value is None else str(value)


def _bare(shown: str) -> str:
    """Remove the note on whether a variable is set from a value of ``describe``."""
    return shown.removesuffix(" (set)").removesuffix(" (not set)")
