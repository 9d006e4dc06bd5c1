"""Settings under their old names: translated and rewritten in an older home, refused by name everywhere else."""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trunkline.config import InvalidConfig, load_config
from trunkline.config.home_format import FORMAT_VERSION, NewerFormatError, read_format, require_known_format
from trunkline.config.renamed_settings import RENAMED_IN, RENAMED_SETTINGS, rename_settings
from trunkline.config.settings import Settings
from trunkline.errors import ConfigError
from trunkline.home.migration import migrate
from trunkline.home.paths import Home
from trunkline.plugins import Plugins
from trunkline.plugins.pins import read_pins
from trunkline.testing.platform import clean_environ

HOME_FORMAT_1 = Path(__file__).parent / "home_format_1"
"""What the version of commit cbf250c wrote into a home, with every setting that was renamed since then."""

SETTINGS = (HOME_FORMAT_1 / "trunkline.toml").read_text()


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A home of format 1."""
    return Path(shutil.copytree(HOME_FORMAT_1, tmp_path / "home"))


def leaves(table: dict[str, Any], under: str = "") -> dict[str, Any]:
    """The values by dotted key."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        key = f"{under}{name}"
        found |= leaves(value, f"{key}.") if isinstance(value, dict) else {key: value}
    return found


def renamed(key: str) -> str:
    """The dotted key of today for a key of the older home, for one below a renamed table too."""
    for old, new in RENAMED_SETTINGS.items():
        if key == old or key.startswith(f"{old}."):
            return f"{old.rpartition('.')[0]}.{new}{key.removeprefix(old)}"
    return key


def test_the_stored_home_has_every_old_key() -> None:
    """A row of the table that the stored home does not have would not be tested here."""
    keys = leaves(tomllib.loads(SETTINGS))
    assert [old for old in RENAMED_SETTINGS if not any(f"{key}.".startswith(f"{old}.") for key in keys)] == []


def test_every_new_key_of_the_platform_is_a_setting() -> None:
    """No old key is a setting."""
    known = {
        f"{section.name}.{field.name}"
        for section in msgspec.structs.fields(Settings)
        for field in msgspec.structs.fields(section.type)
    }
    own = [old for old in RENAMED_SETTINGS if old.count(".") == 1]
    assert not known & set(own) and known >= {renamed(old) for old in own}


def test_comments_and_order_stay_and_values_keep_their_meaning() -> None:
    """Only keys differ: line for line, the comment of each included."""
    after = rename_settings(SETTINGS)
    assert leaves(tomllib.loads(after)) == {
        renamed(key): value for key, value in leaves(tomllib.loads(SETTINGS)).items()
    }
    assert rename_settings(after) == after
    for before, line in zip(SETTINGS.splitlines(), after.splitlines(), strict=True):
        assert line.partition("#")[1:] == before.partition("#")[1:]
        if before.startswith("["):
            assert renamed(before.strip("[]")) == line.strip("[]")
        elif " = " in before and "{" not in before:
            assert line.partition(" = ")[2] == before.partition(" = ")[2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("monitor.coalesce = 1 # c\n", "monitor.text_flush_seconds = 1 # c\n"),
        ('"monitor" . "coalesce" = 1\n', '"monitor" . "text_flush_seconds" = 1\n'),
        ("[monitor]\n'coalesce' = 1\n", "[monitor]\n'text_flush_seconds' = 1\n"),
        ("[plugins]\nsandbox.warm = 1\nx = 1\n", "[plugins]\nsandbox.warm_containers = 1\nx = 1\n"),
        ('[models]\nwindows."a.b/c" = 1\n', '[models]\ncontext_windows."a.b/c" = 1\n'),
        ("[bus] # ours\nwait = 1\n", "[bus] # ours\nconnect_timeout = 1\n"),
        ("[waits]\nwait = 1\n", "[waits]\nwait = 1\n"),
    ],
)
def test_every_way_to_write_a_key(before: str, after: str) -> None:
    """Dotted, quoted, in a table's header; a key of another table with the same name stays."""
    assert rename_settings(before) == after


@pytest.mark.parametrize(
    "before",
    [
        'monitor = { coalesce = 1, bootstrap = "x" }\n',
        '[monitor]\nbootstrap = """\ncoalesce = 2\n"""\ncoalesce = 1\n',
        '[monitor]\nbootstrap = """\n[tools]\n"""\ncoalesce = 1\n',
        "[monitor]\r\ncoalesce = 1\r\n",
    ],
)
def test_text_that_resembles_a_key_is_unchanged(before: str) -> None:
    """Inline tables and texts of several lines: the values are right, in any layout."""
    after = leaves(tomllib.loads(rename_settings(before)))
    assert after == {renamed(key): value for key, value in leaves(tomllib.loads(before)).items()}


def test_an_old_name_beside_the_new_one_is_refused(older: Path) -> None:
    """Which of the two applies is unknown."""
    (older / "trunkline.toml").write_text("[monitor]\ncoalesce = 1\ntext_flush_seconds = 2\n")
    with pytest.raises(InvalidConfig, match=r"monitor\.coalesce is now called monitor\.text_flush_seconds"):
        load_config(older, environ={})


@pytest.mark.parametrize("old", RENAMED_SETTINGS)
def test_an_old_name_is_refused_with_the_new_one(old: str, tmp_path: Path) -> None:
    """In a file that was not migrated, and in a variable, the error has the place, and the new name."""
    migrate(prepared(tmp_path))
    table, _, name = old.rpartition(".")
    (tmp_path / "trunkline.toml").write_text(f"[{table}]\n{name} = 1\n")
    variable = f"TRUNKLINE_{old.replace('.', '__').upper()}"
    for environ in ({}, {variable: "1"}):
        if environ:
            (tmp_path / "trunkline.toml").unlink()
        with pytest.raises(InvalidConfig) as refused:
            read_section(tmp_path, table, environ)
        problem = str(refused.value.problems[0])
        assert f"{old} is now called {renamed(old)} " in problem
        place = variable if environ else f"{tmp_path}/trunkline.toml, line 2"
        assert f"({place})" in problem
        new = f"TRUNKLINE_{renamed(old).replace('.', '__').upper()}" if environ else RENAMED_SETTINGS[old]
        assert f" {new} instead of " in problem


def read_section(home: Path, table: str, environ: dict[str, str]) -> None:
    """Load everything, and the section of a plugin as the plugin does."""
    config = load_config(home, environ=environ)
    owner, _, name = table.partition(".")
    if name:
        sections = [owned.item for owned in Plugins.load(config).config_sections()]
        [kind] = [one.type for one in sections if (one.table, one.name) == (owner, name)]
        config.section(owner, name, kind)


def prepared(path: Path) -> Home:
    home = Home.at(path)
    home.prepare()
    return home


def test_an_older_home_is_read_as_it_will_be_written(older: Path) -> None:
    """Before the migration too, as ``trunkline config`` and ``doctor`` do: by the new names, and nothing is changed."""
    before = (older / "trunkline.toml").read_bytes()
    settings = load_config(older, environ={}).settings
    assert settings.monitor.text_flush_seconds == 0.02 and settings.memory.fsync is False
    assert settings.approvals.channel_deadlines == {"mail": 259200.0}
    assert (older / "trunkline.toml").read_bytes() == before


def test_a_variable_with_an_old_name_is_refused_for_an_older_home_too(older: Path) -> None:
    """The migration cannot rewrite the environment."""
    with pytest.raises(InvalidConfig, match=r"bus\.wait is now called") as refused:
        load_config(older, environ={"TRUNKLINE_BUS__WAIT": "1"})
    assert refused.value.hint == "Set TRUNKLINE_BUS__CONNECT_TIMEOUT instead of TRUNKLINE_BUS__WAIT."


def test_the_file_is_rewritten_and_the_old_one_kept(older: Path) -> None:
    """The same settings before and after; the file as it was lies in ``before-2``. An older program refuses it."""
    before = load_config(older, environ={}).settings
    home = Home.at(older)
    home.prepare()
    assert [step.to for step in migrate(home)] == [RENAMED_IN]
    assert load_config(older, environ={}).settings == before
    assert home.config_file.read_text() == rename_settings(SETTINGS)
    assert (older / f"before-{RENAMED_IN}" / "trunkline.toml").read_text() == SETTINGS
    mark = read_format(older)
    assert mark is not None and mark.format == FORMAT_VERSION
    with pytest.raises(NewerFormatError, match="which is newer"):
        require_known_format(older, known=RENAMED_IN - 1)


def test_a_file_that_cannot_be_written_is_named(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cases include a read-only mount: the message has the fix, and the home keeps its format."""

    def refuse(file: Path, text: str) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("trunkline.home.migration_steps.replace_file", refuse)
    home = Home.at(older)
    home.prepare()
    with pytest.raises(ConfigError, match="Read-only file system") as refused:
        migrate(home)
    assert "trunkline config" in refused.value.hint
    mark = read_format(older)
    assert mark is not None and mark.format == RENAMED_IN - 1


def test_a_newer_home_is_distinguished_from_a_misspelling(older: Path) -> None:
    """Settings that only a newer version knows are not called unknown: the home is newer."""
    (older / "form.json").write_text(json.dumps({"form": FORMAT_VERSION + 1, "version": "9.9"}))
    (older / "trunkline.toml").write_text("[monitor]\nof_tomorrow = 1\n")
    with pytest.raises(NewerFormatError, match="written by Trunkline"):
        load_config(older, environ={})


def test_a_migrated_older_home_works(older: Path) -> None:
    """A turn runs on it; the owner's rules, the block and the installed plugins' pins are there."""
    assert trunkline(older, "say", "hello").returncode == 0
    mark = read_format(older)
    assert mark is not None and mark.format == FORMAT_VERSION
    [rule] = json.loads(trunkline(older, "permissions", "rules", "list", "--json").stdout)["policies"]
    assert rule["id"] == "deny-memory-diary" and rule["policy"]["resource"] == "memory:/diary/*"
    assert list(read_pins(older)) == ["trunkline-weather"]
    rows = json.loads(trunkline(older, "config", "--json").stdout)["settings"]
    assert next(row["value"] for row in rows if row["key"] == "plugins.sandbox.warm_containers") == "1"


def trunkline(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "trunkline.cli.main", *arguments],
        env={**clean_environ(), "TRUNKLINE_HOME": str(home)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
