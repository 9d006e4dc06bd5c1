"""Reads the configuration: defaults, then ``trunkline.toml``, then ``TRUNKLINE_<SECTION>__<KEY>``, then flags."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from trunkline._util.regular_file import read_regular
from trunkline.config.checker import SettingsChecker, with_absolute_paths
from trunkline.config.config import Config
from trunkline.config.home_format import FORMAT_VERSION, read_format, require_known_format
from trunkline.config.origins import KEY_SEPARATOR, VARIABLE_PREFIX, Key, LayeredValues, ValueOrigin
from trunkline.config.plugin_host import PluginHostSettings
from trunkline.config.problems import InvalidConfig, did_you_mean
from trunkline.config.renamed_settings import RENAMED_IN, rename_settings
from trunkline.config.settings import PLUGIN_TABLES, Settings
from trunkline.errors import ConfigError, StorageError

HOME_VARIABLE = "TRUNKLINE_HOME"
FILE_NAME = "trunkline.toml"
_TOML_HINT = 'Correct that line. Text is in quotes (key = "text"), and each [table] appears once.'


def resolve_home(environ: Mapping[str, str] | None = None) -> Path:
    """Return the home folder, as an absolute path: ``TRUNKLINE_HOME``, or ``~/.trunkline``. It need not exist."""
    value = (os.environ if environ is None else environ).get(HOME_VARIABLE)
    return Path(value).expanduser().absolute() if value else Path.home() / ".trunkline"


def load_config(
    home: Path | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    text: str | None = None,
) -> Config:
    """Read the configuration of a home folder.

    ``flags`` maps dotted keys to values (``{"gateway.port": 8500}``); None means that the flag is not given. ``text``
    is read in place of that of the file, to check it before it is written. Nothing is created or written.

    Raises:
        InvalidConfig: settings are unknown or have the wrong type. The error lists all of them with file and line.
        NewerFormatError: a newer version wrote the home, and this one does not know some of its settings.
        ConfigError: the file cannot be read or is not TOML.
    """
    environ = os.environ if environ is None else environ
    home = resolve_home(environ) if home is None else home.expanduser().absolute()
    sources = LayeredValues(home / FILE_NAME)
    written = _format_of(home)
    _lay_file(sources, text, rename=written is not None and written < RENAMED_IN)
    _lay_environment(sources, environ)
    for dotted, value in (flags or {}).items():
        if value is not None:
            sources.put(tuple(dotted.split(".")), value, ValueOrigin("flag", "the command line"))
    try:
        settings = _settings(sources, home)
    except InvalidConfig:
        if written is not None and written > FORMAT_VERSION:
            require_known_format(home)  # this is the cause: the newer version's settings are unknown here
        raise
    return Config(home, sources.file, settings, _origins(sources), sources, environ)


def _format_of(home: Path) -> int | None:
    """Return the home version; None when the home is not used yet or the version cannot be read. Commands that start
    workers report the error.
    """
    try:
        mark = read_format(home)
    except StorageError:
        return None
    return mark.format if mark is not None else None


def _lay_file(sources: LayeredValues, text: str | None, *, rename: bool) -> None:
    try:
        text = read_regular(sources.file).decode("utf-8-sig") if text is None else text
        sources.text = rename_settings(text) if rename else text
        table = tomllib.loads(sources.text)
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(
            f"{sources.file} cannot be read: {reason}.", hint="Make it a readable file."
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{sources.file} is not valid TOML: {error}.", hint=_TOML_HINT) from error
    sources.add_layer(table, ValueOrigin("file", str(sources.file)))


def _lay_environment(sources: LayeredValues, environ: Mapping[str, str]) -> None:
    for variable, value in sorted(environ.items()):
        if variable.startswith(VARIABLE_PREFIX) and KEY_SEPARATOR in variable and value:
            key: Key = tuple(variable.removeprefix(VARIABLE_PREFIX).lower().split(KEY_SEPARATOR))
            sources.put(_as_written(sources, key), value, ValueOrigin("env", variable))


def _as_written(sources: LayeredValues, key: Key) -> Key:
    """Return the key with the plugin's name as the file spells it. The name of an environment variable cannot contain
    ``-``.
    """
    if len(key) < 3 or key[0] not in PLUGIN_TABLES:
        return key
    written = sources.get((key[0],)) or {}
    name = next((other for other in written if other.replace("-", "_") == key[1]), key[1])
    return (key[0], name, *key[2:])


def _settings(sources: LayeredValues, home: Path) -> Settings:
    checker = SettingsChecker(sources)
    sections = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    for name in sources.values:
        if name not in sections and name not in PLUGIN_TABLES:
            checker.note((name,), "is not a section", did_you_mean(name, {*sections, *PLUGIN_TABLES}))
    found: dict[str, Any] = {}
    for name, kind in sections.items():
        found[name] = checker.section((name,), kind, passing=name in PLUGIN_TABLES)
    _check_free(checker, sections)
    if checker.problems:
        raise InvalidConfig(checker.problems)
    return Settings(**{name: with_absolute_paths(section, home) for name, section in found.items()})


def _check_free(checker: SettingsChecker, sections: Mapping[str, Any]) -> None:
    for table in (table for table in PLUGIN_TABLES if table not in sections):
        value = checker.sources.get((table,))
        if value is not None and not isinstance(value, dict):
            checker.note((table,), f"must hold tables, as [{table}.name]")
            continue
        for name, inner in (value or {}).items():
            if not isinstance(inner, dict):
                checker.note(
                    (table, name),
                    "is not a setting",
                    f"Settings stand in a table of their own: [{table}.name].",
                )
    for name, inner in (checker.sources.get(("plugins",)) or {}).items():
        if isinstance(inner, dict):
            checker.section(("plugins", name), PluginHostSettings, ignored=lambda _: True)


def _origins(sources: LayeredValues) -> dict[str, ValueOrigin]:
    known = {
        f"{section.name}.{field.name}": ValueOrigin()
        for section in msgspec.structs.fields(Settings)
        for field in msgspec.structs.fields(section.type)
    }
    return known | {".".join(key): origin for key, origin in sources.origins.items()}
