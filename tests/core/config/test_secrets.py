"""Secrets are references: their values are in no setting, text or error."""

import msgspec
import pytest

from trunkline.config import InvalidConfig, Secret, load_config
from trunkline.errors import ConfigError

VALUE = "hunter2-very-secret"


def config(home, text="", **environ):
    (home / "trunkline.toml").write_text(text)
    return load_config(home, environ=environ)


@pytest.mark.parametrize("written", ['{ env = "NATS_PASSWORD" }', '"$NATS_PASSWORD"'])
def test_a_reference_is_kept_and_the_value_is_not(tmp_path, written):
    """The setting holds the variable's name; only ``reveal`` gives the value."""
    loaded = config(tmp_path, f"[bus]\npassword = {written}\n", NATS_PASSWORD=VALUE)
    password = loaded.settings.bus.password
    assert password == Secret("NATS_PASSWORD")
    assert password.reveal({"NATS_PASSWORD": VALUE}) == VALUE
    assert VALUE not in repr(loaded.settings) + str(loaded.settings)


def test_a_secret_that_is_written_out_is_refused(tmp_path):
    """A literal is refused with the way to write it, and is not repeated in the error."""
    with pytest.raises(InvalidConfig) as caught:
        config(tmp_path, f'[bus]\npassword = "{VALUE}"\n')
    assert 'write password = { env = "ITS_NAME" }' in caught.value.hint
    assert VALUE not in str(caught.value) + caught.value.hint


def test_a_list_of_references_is_written_as_a_single_one(tmp_path):
    """Each with a dollar sign or as a table. A literal in a list is refused and not repeated."""

    class Pool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        keys: tuple[Secret, ...] = ()

    good = config(tmp_path, '[plugins.pool]\nkeys = ["$ONE", { env = "TWO" }]\n')
    assert good.section("plugins", "pool", Pool).keys == (Secret("ONE"), Secret("TWO"))
    for literal in (f'"{VALUE}"', f'["$ONE", "{VALUE}"]', "[3]"):
        with pytest.raises(InvalidConfig, match=r"plugins\.pool\.keys") as caught:
            config(tmp_path, f"[plugins.pool]\nkeys = {literal}\n").section("plugins", "pool", Pool)
        assert VALUE not in str(caught.value) + caught.value.hint and "line 2" in str(caught.value)
    with pytest.raises(InvalidConfig) as caught:
        config(tmp_path, f'[plugins.pool]\nkeys = ["{VALUE}"]\n').section("plugins", "pool", Pool)
    assert 'write keys = [{ env = "ITS_NAME" }]' in caught.value.hint


@pytest.mark.parametrize(
    "written", ["3", "{ file = 'x' }", "{ env = 'A', extra = 1 }", "{ env = 'a b' }", "[]"]
)
def test_other_shapes_are_refused(tmp_path, written):
    """Only a reference is a secret."""
    with pytest.raises(InvalidConfig, match=r"bus\.password"):
        config(tmp_path, f"[bus]\npassword = {written}\n")


def test_the_variable_of_a_setting_may_be_the_secret_itself(tmp_path):
    """TRUNKLINE_BUS__PASSWORD holds the secret, so the setting refers to that variable."""
    loaded = config(tmp_path, TRUNKLINE_BUS__PASSWORD=VALUE)
    assert loaded.settings.bus.password == Secret("TRUNKLINE_BUS__PASSWORD")
    assert VALUE not in "".join(row.value for row in loaded.describe())


def test_a_missing_secret_names_its_variable():
    """Revealing a variable that is unset or empty raises with its name."""
    for environ in ({}, {"NOPE": ""}):
        assert not Secret("NOPE").is_set(environ)
        with pytest.raises(ConfigError, match="NOPE") as caught:
            Secret("NOPE").reveal(environ)
        assert "export NOPE=" in caught.value.hint


def test_the_listing_shows_references_only(tmp_path):
    """``trunkline config`` shows name and presence of secrets, hides what looks like one, and masks addresses."""
    text = (
        '[bus]\nurl = "nats://ada:pw@host:4222"\npassword = { env = "NATS_PASSWORD" }\n'
        f'[adapters.openai]\napi_key = {{ env = "KEY" }}\n[channels.telegram]\nbot_token = "{VALUE}"\nname = "x"\n'
    )
    rows = {row.key: row for row in config(tmp_path, text, KEY=VALUE).describe()}
    assert rows["bus.password"].value == "env:NATS_PASSWORD (not set)"
    assert rows["adapters.openai.api_key"].value == "env:KEY (set)"
    assert rows["channels.telegram.bot_token"].value == "(hidden)"
    assert rows["channels.telegram.name"].value == "x"
    assert rows["bus.url"].value == "nats://...@host:4222"
    assert rows["bus.url"].origin.kind == "file" and rows["gateway.port"].origin.kind == "default"
    assert VALUE not in "".join(row.value for row in rows.values())


def test_a_list_of_secrets_inside_a_plugins_section(tmp_path):
    """A section may hold tables of its own with secrets in them; the same rules hold there."""

    class Account(msgspec.Struct, frozen=True):
        token: Secret

    class Mail(msgspec.Struct, frozen=True):
        account: Account

    good = config(tmp_path, '[plugins.mail.account]\ntoken = "$T"\n')
    assert good.section("plugins", "mail", Mail).account.token == Secret("T")
    bad = config(tmp_path, f'[plugins.mail.account]\ntoken = "{VALUE}"\n')
    with pytest.raises(InvalidConfig, match=r"plugins\.mail\.account\.token is a secret"):
        bad.section("plugins", "mail", Mail)
