"""Reads the configuration: defaults, then ``trunkline.toml``, then ``TRUNKLINE_<SECTION>__<KEY>``, then flags."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from trunkline._util.regular_file import read_regular
from trunkline.config.checker import Checker, anchored
from trunkline.config.config import Config
from trunkline.config.origins import Key, Origin, Sources
from trunkline.config.plugin_host import Hosting
from trunkline.config.problems import InvalidConfig, did_you_mean
from trunkline.config.settings import FREE_TABLES, Settings
from trunkline.errors import ConfigError

HOME_VARIABLE = "TRUNKLINE_HOME"
FILE_NAME = "trunkline.toml"
_PREFIX, _BETWEEN = "TRUNKLINE_", "__"
_TOML_HINT = 'Mend that line. Text stands in quotes (key = "text"), and each [table] stands once.'


def find_home(environ: Mapping[str, str] | None = None) -> Path:
    """The home folder: ``TRUNKLINE_HOME``, or ``~/.trunkline``. Absolute; it need not exist."""
    value = (os.environ if environ is None else environ).get(HOME_VARIABLE)
    return Path(value).expanduser().absolute() if value else Path.home() / ".trunkline"


def load_config(
    home: Path | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read the configuration of a home folder.

    ``flags`` maps dotted keys to values (``{"gateway.port": 8500}``); one that is None is as if it were not given.
    Nothing is created or written.

    Raises:
        InvalidConfig: naming every setting that is unknown or of the wrong type, with its file and line.
        ConfigError: the file cannot be read or is not TOML.
    """
    environ = os.environ if environ is None else environ
    home = find_home(environ) if home is None else home.expanduser().absolute()
    sources = Sources(home / FILE_NAME)
    _lay_file(sources)
    _lay_environment(sources, environ)
    for dotted, value in (flags or {}).items():
        if value is not None:
            sources.put(tuple(dotted.split(".")), value, Origin("flag", "the command line"))
    return Config(home, sources.file, _settings(sources, home), _origins(sources), sources, environ)


def _lay_file(sources: Sources) -> None:
    try:
        sources.text = read_regular(sources.file).decode("utf-8-sig")
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
    sources.lay(table, Origin("file", str(sources.file)))


def _lay_environment(sources: Sources, environ: Mapping[str, str]) -> None:
    for variable, value in sorted(environ.items()):
        if variable.startswith(_PREFIX) and _BETWEEN in variable and value:
            key: Key = tuple(variable.removeprefix(_PREFIX).lower().split(_BETWEEN))
            sources.put(_as_written(sources, key), value, Origin("env", variable))


def _as_written(sources: Sources, key: Key) -> Key:
    """The key with its plugin named as in the file: a variable's name has no room for ``-``."""
    if len(key) < 3 or key[0] not in FREE_TABLES:
        return key
    written = sources.get((key[0],)) or {}
    name = next((other for other in written if other.replace("-", "_") == key[1]), key[1])
    return (key[0], name, *key[2:])


def _settings(sources: Sources, home: Path) -> Settings:
    checker = Checker(sources)
    sections = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    for name in sources.values:
        if name not in sections and name not in FREE_TABLES:
            checker.note((name,), "is not a section", did_you_mean(name, {*sections, *FREE_TABLES}))
    found: dict[str, Any] = {}
    for name, kind in sections.items():
        found[name] = checker.section((name,), kind, passing=name in FREE_TABLES)
    _check_free(checker, sections)
    if checker.problems:
        raise InvalidConfig(checker.problems)
    return Settings(**{name: anchored(section, home) for name, section in found.items()})


def _check_free(checker: Checker, sections: Mapping[str, Any]) -> None:
    for table in (table for table in FREE_TABLES if table not in sections):
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
            checker.section(("plugins", name), Hosting, ignored=lambda _: True)


def _origins(sources: Sources) -> dict[str, Origin]:
    known = {
        f"{section.name}.{field.name}": Origin()
        for section in msgspec.structs.fields(Settings)
        for field in msgspec.structs.fields(section.type)
    }
    return known | {".".join(key): origin for key, origin in sources.origins.items()}
