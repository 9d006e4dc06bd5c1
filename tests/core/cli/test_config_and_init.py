"""Settings: shown with their origin, and set for the first time."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from trunkline.testing.script import Refuse
from trunkline.testing.scripted_provider import ScriptedProvider

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_every_setting_is_shown_with_its_origin(trunkline: Run, home: Path) -> None:
    """Default, file and environment are distinguished; secrets are shown as their variables."""
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


def test_an_unused_section_is_reported(trunkline: Run, home: Path) -> None:
    """A misspelt adapter does not pass in silence: its table and line, beside the settings."""
    home.mkdir()
    (home / "trunkline.toml").write_text('[adapters.nosuch]\nmodel = "x"\n')
    shown = trunkline("config")
    assert shown.returncode == 0 and "gateway.port" in shown.stdout
    assert "Warning: adapters.nosuch" in shown.stderr and "line 1" in shown.stderr


def test_standard_input_is_read_only_on_request(trunkline: Run) -> None:
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
    """--yes asks nothing; existing settings are kept."""
    arguments = (
        "init",
        "--yes",
        "--adapter",
        "openai",
        "--key-env",
        "MY_KEY",
        "--base-url",
        "http://127.0.0.1:9/v1",
    )
    assert trunkline(*arguments).returncode == 0
    text = (home / "trunkline.toml").read_text()
    assert 'provider_adapter = "openai"' in text and 'env = "MY_KEY"' in text
    assert home.stat().st_mode & 0o077 == 0
    again = trunkline(*arguments)
    assert (again.returncode, (home / "trunkline.toml").read_text()) == (0, text)
    assert "nothing to change" in again.stdout


def test_a_bare_init_makes_a_settings_file_that_explains_itself(trunkline: Run, home: Path) -> None:
    """MB-T1: the file exists afterwards, changes no setting, and a second run leaves it alone."""
    assert trunkline("init", "--yes").returncode == 0
    written = (home / "trunkline.toml").read_bytes()
    assert b"api_key = { env" in written
    again = trunkline("init", "--yes")
    assert "nothing to change" in again.stdout and (home / "trunkline.toml").read_bytes() == written


def test_init_asks_for_the_variable_and_never_for_the_key(trunkline: Run, home: Path) -> None:
    """A key given in the place of its variable's name is refused, not stored and not repeated."""
    key = "sk-proj-not-a-name-123"
    done = trunkline("init", "--yes", "--adapter", "openai", "--key-env", key)
    assert done.returncode == 1 and "not the name of an environment variable" in done.stderr
    assert key not in done.stdout + done.stderr
    assert not (home / "trunkline.toml").exists()


def test_init_asks_nothing_where_there_is_no_terminal(trunkline: Run, home: Path) -> None:
    """Nothing is guessed and nothing is changed: the output names the option without questions."""
    done = trunkline("init", stdin="garden\nopenai\nGARDEN_KEY\nsmall-model\n")
    assert done.returncode == 2 and "need a terminal" in done.stderr and "--yes" in done.stderr
    assert not home.exists()
    assert trunkline("init", "--json").returncode == 2


def test_init_names_the_variable_that_is_missing(trunkline: Run) -> None:
    """MB-T1: the variable is named in words, and as JSON for a script. Without the key no answer is requested."""
    arguments = ("init", "--yes", "--adapter", "openai", "--key-env", "GARDEN_KEY", "--test")
    done = trunkline(*arguments)
    assert done.returncode == 0 and "GARDEN_KEY is not set" in done.stderr
    found = json.loads(trunkline(*arguments, "--json").stdout)
    assert (found["missing"], found["answer"], found["changed"]) == (["GARDEN_KEY"], None, {})
    assert json.loads(trunkline(*arguments, "--json", env={"GARDEN_KEY": "x"}).stdout)["missing"] == []


def test_init_shows_the_models_first_answer_on_request(trunkline: Run) -> None:
    """The model is called once, through its adapter, and its answer is shown. An unreachable server is an error that
    names it, and the settings stay."""
    with ScriptedProvider() as provider:
        arguments = ("init", "--yes", "--adapter", "openai", "--base-url", provider.url, "--model", "tiny")
        done = trunkline(*arguments, "--test")
        assert (done.returncode, "openai answers: " in done.stdout) == (0, True), done.stderr
        assert len(provider.requests) == 1 and provider.requests[0].body["model"] == "tiny"
        assert trunkline(*arguments).returncode == 0 and len(provider.requests) == 1
    away = trunkline("init", "--yes", "--test")
    assert away.returncode == 1 and "openai did not answer: nothing answers at its address" in away.stderr
    assert "tiny" in trunkline("config").stdout


def test_init_says_that_a_server_wants_a_key_when_none_is_set(trunkline: Run) -> None:
    """With a key, the server does not accept it."""
    with ScriptedProvider(lambda _: (Refuse(401, "invalid_api_key", "no key"),)) as provider:
        arguments = (
            "init",
            "--yes",
            "--adapter",
            "openai",
            "--base-url",
            provider.url,
            "--model",
            "tiny",
            "--test",
        )
        without, wrong = trunkline(*arguments), trunkline(*arguments, env={"OPENAI_API_KEY": "sk-x"})
    assert without.returncode == wrong.returncode == 1
    assert "it wants a key, and OPENAI_API_KEY is not set" in without.stderr
    assert "it does not accept the key" in wrong.stderr


def test_init_sets_what_an_adapter_needs_by_flags(trunkline: Run, home: Path) -> None:
    """Without a terminal, values keep their types. The test is announced before it is sent; a setting that does not
    exist, or that is a secret, is refused and the file unchanged."""
    with ScriptedProvider() as provider:
        done = trunkline(
            "init", "--yes", "--adapter", "ollama", "--base-url", provider.address, "--model", "scripted",
            "--set", "pull=true", "--set", "connect_timeout=3.5", "--test",
        )  # fmt: skip
    assert done.returncode == 0 and "ollama answers: " in done.stdout, done.stderr
    announced = done.stderr.index("Test: one message goes to ollama/scripted at http://127.0.0.1")
    assert announced >= 0 and "It may cost" in done.stderr
    text = (home / "trunkline.toml").read_text()
    assert "pull = true" in text and "connect_timeout = 3.5" in text
    for wrong, said in (("api_key=sk-canary", "--key-env"), ("regoin=x", "region")):
        refused = trunkline("init", "--yes", "--adapter", "bedrock", "--set", wrong)
        assert refused.returncode == 1 and said in refused.stderr and "canary" not in refused.stderr
    assert (home / "trunkline.toml").read_text() == text


def test_an_address_that_is_no_url_is_refused_and_the_file_unchanged(trunkline: Run, home: Path) -> None:
    """Other commands would fail as long as it is in the file."""
    arguments = ("init", "--yes", "--adapter", "openai", "--model", "tiny", "--base-url")
    assert trunkline(*arguments, "http://127.0.0.1:9/v1").returncode == 0
    before = (home / "trunkline.toml").read_text()
    done = trunkline(*arguments, "127.0.0.1:9/v1")
    assert done.returncode == 1 and "which is not a web address" in done.stderr
    assert (home / "trunkline.toml").read_text() == before


def test_config_shows_the_settings_although_an_address_is_invalid(trunkline: Run, home: Path) -> None:
    """It is a warning with the line. Doctor reports it as a failed check, beside the others."""
    home.mkdir(exist_ok=True)
    (home / "trunkline.toml").write_text('[adapters.openai]\nbase_url = "127.0.0.1:9/v1"\n')
    done = trunkline("config", "adapters")
    assert done.returncode == 0 and "adapters.openai.base_url" in done.stdout
    assert "adapters.openai.base_url is '127.0.0.1:9/v1', which is not a web address" in done.stderr
    assert "trunkline.toml, line 2" in done.stderr
    checked = trunkline("doctor")
    assert checked.returncode == 1 and "home.writable" in checked.stdout
    assert "ERROR    config.valid" in checked.stdout and "line 2" in checked.stdout


def test_an_invalid_block_name_is_refused_and_the_file_unchanged(trunkline: Run, home: Path) -> None:
    """The result is checked before it counts."""
    trunkline("init", "--yes", "--block", "garden")
    before = (home / "trunkline.toml").read_text()
    done = trunkline("init", "--yes", "--block", "Not A Name")
    assert done.returncode == 1 and "gateway.default_block" in done.stderr
    assert (home / "trunkline.toml").read_text() == before
