"""The configuration as used by the rest of the program. It does not change while the program runs."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from trunkline.config.checker import VARIABLE_REFERENCE, SettingsChecker, with_absolute_paths
from trunkline.config.origins import Key, LayeredValues, ValueOrigin
from trunkline.config.plugin_host import HOST_KEYS, PluginHostSettings
from trunkline.config.problems import ConfigProblem, InvalidConfig, did_you_mean, is_misspelling
from trunkline.config.secret import Secret
from trunkline.config.secret_names import is_telling, without_login
from trunkline.config.settings import PLUGIN_TABLES, Settings

if TYPE_CHECKING:
    from trunkline._util.secrets.log_redactor import LogRedactor

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A line of ``trunkline config``. A secret is shown as ``env:NAME (set)`` or ``env:NAME (not set)``."""

    key: str
    value: str
    origin: ValueOrigin


@dataclass(frozen=True, slots=True)
class Config:
    """The typed settings of the platform and, on request, those of plugins.

    ``origins`` maps a dotted key to the origin of its value.
    """

    home: Path
    file: Path
    settings: Settings
    origins: Mapping[str, ValueOrigin]
    sources: LayeredValues
    environ: Mapping[str, str]

    def section(self, table: str, name: str, kind: type[S]) -> S:
        """Return a plugin's section ``[<table>.<name>]``, decoded; the defaults when it is absent.

        Raises:
            InvalidConfig: the section is not valid. The error lists all its problems.
        """
        return with_absolute_paths(self.written_section(table, name, kind), self.home)

    def written_section(self, table: str, name: str, kind: type[S]) -> S:
        """Return a plugin's section as ``section`` does, with its paths as they are written.

        Raises:
            InvalidConfig: the section is not valid. The error lists all its problems.
        """
        checker = SettingsChecker(self.sources)
        ignored = HOST_KEYS.__contains__ if table == "plugins" else None
        section = checker.section(self.section_key(table, name), kind, ignored=ignored)
        if section is None:
            raise InvalidConfig(checker.problems)
        return section

    def section_key(self, table: str, name: str) -> Key:
        """Return the key of ``[<table>.<name>]`` as the sources spell it."""
        return (table, self._written(table, name))

    def plugin_host(self, *names: str) -> PluginHostSettings:
        """Return the host settings of the plugin with one of these names (entry point or distribution)."""
        for name in names:
            if self.has_section("plugins", name):
                key = ("plugins", self._written("plugins", name))
                return (
                    SettingsChecker(self.sources).section(key, PluginHostSettings, ignored=lambda _: True)
                    or PluginHostSettings()
                )
        return PluginHostSettings()

    def secret_variables_of(self, *names: str) -> frozenset[str]:
        """Return the environment variables that the sections of these names refer to as secrets."""
        tables = [
            self.sources.get((table, self._written(table, n))) for table in PLUGIN_TABLES for n in names
        ]
        return frozenset(variable for table in tables for variable in _references(table))

    def secret_variables(self) -> frozenset[str]:
        """Return the environment variables that any setting refers to as secrets."""
        return frozenset(_references(self.sources.values))

    def redactor(self) -> "LogRedactor":
        """Return a redactor for texts that leave this process. It removes secrets with a recognizable form, and this
        home's own secrets.
        """
        from trunkline._util.secrets.log_redactor import LogRedactor

        token = ""
        with suppress(OSError):
            token = (self.home / "token").read_text(encoding="utf-8", errors="replace").strip()
        return LogRedactor({**os.environ, **self.environ}, self.secret_variables(), [token])

    def has_section(self, table: str, name: str) -> bool:
        """Report whether the sources contain ``[<table>.<name>]``."""
        return isinstance(self.sources.get((table, self._written(table, name))), dict)

    def unclaimed(self, claimed: Iterable[tuple[str, str]]) -> tuple[ConfigProblem, ...]:
        """Return a problem for each plugin section that is set and is not among the claimed ones, given as (table,
        name).
        """
        taken = {(table, self._written(table, name)) for table, name in claimed}
        found = []
        for table, name in self._free_sections():
            if (table, name) not in taken:
                key = (table, name)
                hint = did_you_mean(name, (other for owner, other in taken if owner == table), f"{table}.")
                what = "belongs to no plugin that is loaded"
                found.append(ConfigProblem(".".join(key), self.sources.describe_location(key), what, hint))
        return tuple(found)

    def misspelled(self, claimed: Iterable[tuple[str, str]]) -> tuple[ConfigProblem, ...]:
        """Return the problems of ``unclaimed`` whose section has almost the name of a claimed one."""
        claims = list(claimed)
        return tuple(one for one in self.unclaimed(claims) if _is_near_a_claim(one.key, claims))

    def describe(self) -> tuple[SettingRow, ...]:
        """Return every setting with its value and origin. Plugin settings are shown as written."""
        rows: list[SettingRow] = []
        for section, part in _fields(self.settings):
            for name, value in _fields(part):
                written = self.sources.get((section, name)) if isinstance(value, dict) else None
                if written:
                    rows += self._written_rows((section, name), written)
                else:
                    rows.append(
                        SettingRow(f"{section}.{name}", self._shown(value), self._origin((section, name)))
                    )
        for table, name in self._free_sections():
            rows += self._written_rows((table, name), self.sources.get((table, name)))
        return tuple(rows)

    def _written_rows(self, key: Key, value: Any) -> Iterator[SettingRow]:
        if isinstance(value, dict) and set(value) != {"env"}:
            for name, inner in value.items():
                yield from self._written_rows((*key, name), inner)
        elif isinstance(value, dict):
            yield SettingRow(".".join(key), self._shown(Secret(str(value["env"]))), self._origin(key))
        else:
            hidden = is_telling(key[-1]) and not str(value).startswith("$")
            yield SettingRow(".".join(key), "(hidden)" if hidden else self._shown(value), self._origin(key))

    def _shown(self, value: Any) -> str:
        if isinstance(value, Secret):
            return f"env:{value.env} ({'set' if value.is_set(self.environ) else 'not set'})"
        if isinstance(value, tuple | list):
            return "[" + ", ".join(self._shown(item) for item in value) + "]"
        if isinstance(value, bool):
            return str(value).lower()
        return "(none)" if value is None else without_login(str(value))

    def _origin(self, key: Key) -> ValueOrigin:
        return self.sources.origin(key)

    def _free_sections(self) -> Iterator[tuple[str, str]]:
        for table in PLUGIN_TABLES:
            for name, value in (self.sources.get((table,)) or {}).items():
                if isinstance(value, dict):
                    yield table, name

    def _written(self, table: str, name: str) -> str:
        """Return the section's name as the sources spell it. The name of an environment variable cannot contain
        ``-``.
        """
        written = self.sources.get((table,)) or {}
        return next((other for other in written if other.replace("-", "_") == name.replace("-", "_")), name)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, str) and (found := VARIABLE_REFERENCE.match(value)):
        yield found.group(1)
    elif isinstance(value, dict) and set(value) == {"env"}:
        yield str(value["env"])
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _references(inner)


def _fields(struct: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    return ((name, getattr(struct, name)) for name in struct.__struct_fields__)


def _is_near_a_claim(key: str, claims: Iterable[tuple[str, str]]) -> bool:
    table, _, name = key.partition(".")
    return is_misspelling(name, (other for owner, other in claims if owner == table))
