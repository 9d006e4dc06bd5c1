"""Settings: shown with their origin, and set for the first time."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_every_setting_is_shown_with_its_origin(trunkline: Run, home: Path) -> None:
    """Default, file and environment are told apart; secrets are shown as their variables."""
    home.mkdir()
    (home / "trunkline.toml").write_text(
        '[gateway]\nhost = "::1"\n[bus]\npassword = { env = "BUS_PASSWORD" }\n'
    )
    done = trunkline("config", "--json", env={"TRUNKLINE_GATEWAY__PORT": "9000", "BUS_PASSWORD": "swordfish"})
    settings = {one["key"]: one for one in json.loads(done.stdout)["settings"]}
    assert settings["gateway.port"] | {"where": ""} == {
        "key": "gateway.port", "value": "9000", "origin": "env", "where": ""
    }  # fmt: skip
    assert (settings["gateway.host"]["origin"], settings["gateway.host"]["value"]) == ("file", "::1")
    assert settings["gateway.max_content"]["origin"] == "default"
    assert settings["bus.password"]["value"] == "env:BUS_PASSWORD (set)"
    assert "swordfish" not in done.stdout + done.stderr


def test_a_section_that_nobody_reads_is_named(trunkline: Run, home: Path) -> None:
    """A misspelt adapter does not pass in silence: its table and line, beside the settings."""
    home.mkdir()
    (home / "trunkline.toml").write_text('[adapters.nosuch]\nmodel = "x"\n')
    shown = trunkline("config")
    assert shown.returncode == 0 and "gateway.port" in shown.stdout
    assert "Warning: adapters.nosuch" in shown.stderr and "line 1" in shown.stderr


def test_what_is_piped_in_is_read_when_it_is_said_so(trunkline: Run) -> None:
    """Without a TEXT nothing is guessed; the way to read a pipe is named."""
    missing = trunkline("say", stdin="hello")
    assert missing.returncode == 2 and "trunkline say -" in missing.stderr
    assert trunkline("say", "-", stdin="hello").returncode == 0


def test_a_prefix_shows_one_section(trunkline: Run) -> None:
    """The table has a line a setting."""
    lines = trunkline("config", "gateway").stdout.splitlines()
    assert lines[0].split() == ["SETTING", "VALUE", "ORIGIN"]
    assert lines[1:] and all(line.startswith("gateway.") for line in lines[1:])


def test_init_makes_a_private_home_and_the_second_run_changes_nothing(trunkline: Run, home: Path) -> None:
    """--yes asks nothing; what was set stays as it is."""
    wishes = (
        "init",
        "--yes",
        "--adapter",
        "openai",
        "--key-env",
        "MY_KEY",
        "--base-url",
        "http://127.0.0.1:9/v1",
    )
    assert trunkline(*wishes).returncode == 0
    text = (home / "trunkline.toml").read_text()
    assert 'provider_adapter = "openai"' in text and 'env = "MY_KEY"' in text
    assert home.stat().st_mode & 0o077 == 0
    again = trunkline(*wishes)
    assert (again.returncode, (home / "trunkline.toml").read_text()) == (0, text)
    assert "nothing to change" in again.stdout


def test_a_bare_init_makes_a_settings_file_that_explains_itself(trunkline: Run, home: Path) -> None:
    """MB-T1: the file exists afterwards, changes no setting, and a second run leaves it alone."""
    assert trunkline("init", "--yes").returncode == 0
    written = (home / "trunkline.toml").read_bytes()
    assert b"api_key = { env" in written
    again = trunkline("init", "--yes")
    assert "nothing to change" in again.stdout and (home / "trunkline.toml").read_bytes() == written


def test_init_asks_for_the_name_of_a_key_and_never_takes_the_key(trunkline: Run, home: Path) -> None:
    """A key given in the place of its variable's name is refused, not stored and not repeated."""
    key = "sk-proj-not-a-name-123"
    done = trunkline("init", "--yes", "--adapter", "openai", "--key-env", key)
    assert done.returncode == 1 and "not the name of an environment variable" in done.stderr
    assert key not in done.stdout + done.stderr
    assert not (home / "trunkline.toml").exists()


def test_init_asks_when_it_may(trunkline: Run, home: Path) -> None:
    """Block, adapter, variable and model are asked for; what was written can be read back."""
    done = trunkline("init", stdin="garden\nopenai\nGARDEN_KEY\nsmall-model\n")
    assert done.returncode == 0, done.stderr
    shown = trunkline("config").stdout
    assert "garden" in shown and "env:GARDEN_KEY (not set)" in shown and "small-model" in shown


def test_a_block_name_that_cannot_be_is_refused_and_the_file_stays(trunkline: Run, home: Path) -> None:
    """The result is checked before it counts."""
    trunkline("init", "--yes", "--block", "garden")
    before = (home / "trunkline.toml").read_text()
    done = trunkline("init", "--yes", "--block", "Not A Name")
    assert done.returncode == 1 and "gateway.default_block" in done.stderr
    assert (home / "trunkline.toml").read_text() == before
