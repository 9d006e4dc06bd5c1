"""Reading the configuration: layers, origins, and everything that can be wrong with it."""

from pathlib import Path

import msgspec
import pytest

from trunkline.config import Config, InvalidConfig, Secret, ValueOrigin, load_config, resolve_home
from trunkline.contracts.models.prices import Price
from trunkline.errors import ConfigError


def write(home: Path, text: str) -> Path:
    file = home / "trunkline.toml"
    file.write_text(text)
    return file


def load(home: Path, text: str = "", *, environ: dict[str, str] | None = None, **flags: object) -> Config:
    if text:
        write(home, text)
    return load_config(home, environ=environ or {}, flags=flags.get("flags"))  # type: ignore[arg-type]


def problems(home: Path, text: str = "", **more: object) -> dict[str, str]:
    with pytest.raises(InvalidConfig) as caught:
        load(home, text, **more)  # type: ignore[arg-type]
    return {problem.key: str(problem) for problem in caught.value.problems}


def test_everything_has_a_default(tmp_path):
    """Without a file the defaults hold, paths lie in the home folder, and nothing is created."""
    config = load(tmp_path / "nowhere")
    settings = config.settings
    assert settings.gateway.port == 8420 and settings.gateway.host == "127.0.0.1"
    assert settings.runtime.memory_root == tmp_path / "nowhere/memory"
    assert settings.tools.workspaces == tmp_path / "nowhere/workspaces"
    assert config.origins["gateway.port"] == ValueOrigin("default")
    assert not (tmp_path / "nowhere").exists()


def test_later_layers_win(tmp_path):
    """A flag beats a variable, which beats the file, which beats the default; each value knows its origin."""
    text = "[gateway]\nport = 1\nmax_content = 5\n[monitor]\ndrain_timeout = 1\n"
    environ = {"TRUNKLINE_GATEWAY__PORT": "2", "TRUNKLINE_MONITOR__DRAIN_TIMEOUT": "2.5"}
    config = load(tmp_path, text, environ=environ, flags={"gateway.port": 3, "gateway.host": None})
    assert config.settings.gateway.port == 3
    assert config.settings.gateway.max_content == 5
    assert config.settings.monitor.drain_timeout == 2.5
    assert config.origins["gateway.port"] == ValueOrigin("flag", "the command line")
    assert config.origins["gateway.max_content"] == ValueOrigin("file", str(tmp_path / "trunkline.toml"))
    assert config.origins["monitor.drain_timeout"] == ValueOrigin("env", "TRUNKLINE_MONITOR__DRAIN_TIMEOUT")
    assert config.origins["gateway.host"] == ValueOrigin("default")


def test_variables_are_read_as_the_setting_needs(tmp_path):
    """Text in a variable becomes a number, a truth value or a list; an empty variable counts as absent."""
    config = load(
        tmp_path,
        environ={
            "TRUNKLINE_TELEMETRY__TRACES": "false",
            "TRUNKLINE_CHANNELS__ENABLED": "terminal, web",
            "TRUNKLINE_PLUGINS__DISABLED": '["a"]',
            "TRUNKLINE_BUS__URL": "",
        },
    )
    assert config.settings.telemetry.traces is False
    assert config.settings.channels.enabled == ("terminal", "web")
    assert config.settings.plugins.disabled == ("a",)
    assert config.settings.bus.url is None


@pytest.mark.parametrize("table", ["[gateway]\n", "gateway = {}\n", "[gateway]\n# port = 1\n[monitor]\n"])
def test_a_variable_fills_a_table_that_is_empty(tmp_path, table):
    """The variable is read by the type of the setting, for any incomplete table in the file."""
    (tmp_path / "trunkline.toml").write_text(table)
    config = load_config(tmp_path, environ={"TRUNKLINE_GATEWAY__PORT": "9123"})
    assert config.settings.gateway.port == 9123 and config.origins["gateway.port"].kind == "env"


def test_paths_are_relative_to_the_home_folder(tmp_path, monkeypatch):
    """A relative path lies in the home folder, ``~`` is the person's own folder, an absolute one stays."""
    monkeypatch.setenv("HOME", "/people/ada")
    text = '[runtime]\nmemory_root = "m"\ntool_sources = ["~/t", "/abs"]\n'
    runtime = load(tmp_path, text).settings.runtime
    assert runtime.memory_root == tmp_path / "m"
    assert runtime.tool_sources == (Path("/people/ada/t"), Path("/abs"))


def test_the_home_folder(tmp_path, monkeypatch):
    """TRUNKLINE_HOME names the home folder, else it is ~/.trunkline."""
    monkeypatch.setenv("HOME", "/people/ada")
    assert resolve_home({}) == Path("/people/ada/.trunkline")
    assert resolve_home({"TRUNKLINE_HOME": str(tmp_path)}) == tmp_path


def test_all_problems_are_reported_together(tmp_path):
    """Each problem names its key, the file and line or the variable, and the near miss."""
    text = '[gateway]\nprot = 3\nport = "x"\n\n[monitor]\ndrain_timeout = -1\n[gatway]\n'
    found = problems(tmp_path, text, environ={"TRUNKLINE_TOOLS__CONCURRENCY": "many"})
    assert set(found) == {
        "gateway.prot",
        "gateway.port",
        "monitor.drain_timeout",
        "gatway",
        "tools.concurrency",
    }
    assert (
        "trunkline.toml, line 2" in found["gateway.prot"]
        and "Did you mean gateway.port?" in found["gateway.prot"]
    )
    assert "must be a whole number, not text" in found["gateway.port"] and "line 3" in found["gateway.port"]
    assert "line 6" in found["monitor.drain_timeout"]
    assert "Did you mean gateway?" in found["gatway"] and "line 7" in found["gatway"]
    assert "TRUNKLINE_TOOLS__CONCURRENCY" in found["tools.concurrency"]


def test_a_problem_is_reported_in_one_sentence(tmp_path):
    """A single problem reads as a sentence with a hint of its own."""
    write(tmp_path, "[gateway]\nprot = 3\n")
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path, environ={})
    assert caught.value.sentence == f"gateway.prot is not a setting ({tmp_path}/trunkline.toml, line 2)."
    assert caught.value.hint == "Did you mean gateway.port?"


def test_the_runtime_section_has_four_fields(tmp_path):
    """[runtime] refuses every field but PA's four (PA-F42), and every auth mode but local."""
    found = problems(tmp_path, '[runtime]\nmodel = "x"\nauth_mode = "none"\n')
    assert "Known here: auth_mode, memory_root, provider_adapter, tool_sources." in found["runtime.model"]
    assert "cannot be 'none'" in found["runtime.auth_mode"]


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ("gateway = 3", "gateway", "must be a table, not a whole number"),
        ("adapters = 3", "adapters", "must hold tables"),
        ("[adapters]\nopenai = 3", "adapters.openai", "is not a setting"),
        ("[plugins]\nfoo = 3", "plugins.foo", "is not a setting"),
        ("[plugins]\ndisabled = [1]", "plugins.disabled", "must be text, not a whole number (in it: [0])"),
        ("[gateway]\nport = 70000", "gateway.port", "<= 65535"),
        ("[gateway]\nport = true", "gateway.port", "not true or false"),
        ('[gateway]\ndefault_block = "Main Block"', "gateway.default_block", "matching regex"),
        ("[runtime]\nmemory_root = 3", "runtime.memory_root", "must be the path of a file or folder"),
    ],
)
def test_wrong_types_are_refused(tmp_path, text, key, said):
    """A value of the wrong type or out of bounds is named in plain words."""
    assert said in problems(tmp_path, text)[key]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"[gateway\n", "not valid TOML"), (b"\xff\xfe", "not UTF-8"), (b"a = 1\na = 2\n", "not valid TOML")],
)
def test_a_file_that_cannot_be_read(tmp_path, content, said):
    """A file that is no TOML or no text is named, with the line where TOML says it."""
    (tmp_path / "trunkline.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=said) as caught:
        load_config(tmp_path, environ={})
    assert str(tmp_path) in caught.value.sentence


def test_a_folder_in_the_place_of_the_file(tmp_path):
    """A folder called trunkline.toml is a problem, not an empty configuration."""
    (tmp_path / "trunkline.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path, environ={})


class Vendor(msgspec.Struct, frozen=True):
    base_url: str = "https://example.test"
    api_key: Secret | None = None
    retries: int = 0
    cache: Path = Path("cache/vendor")


class Needy(msgspec.Struct, frozen=True):
    city: str


def test_sections_of_plugins_are_decoded_on_demand(tmp_path):
    """[adapters.vendor] becomes the plugin's own type, with defaults, variables and paths as elsewhere."""
    text = '[adapters.vendor]\nretries = 2\napi_key = { env = "VENDOR_KEY" }\n'
    config = load(tmp_path, text, environ={"TRUNKLINE_ADAPTERS__VENDOR__BASE_URL": "http://localhost:1"})
    vendor = config.section("adapters", "vendor", Vendor)
    assert vendor == Vendor("http://localhost:1", Secret("VENDOR_KEY"), 2, tmp_path / "cache/vendor")
    assert config.section("adapters", "other", Vendor).retries == 0
    assert config.has_section("adapters", "vendor") and not config.has_section("adapters", "other")


def test_problems_of_a_plugins_section(tmp_path):
    """They are found when the section is asked for, all together, and name key and line."""
    config = load(tmp_path, '[adapters.vendor]\nretires = 2\nretries = "x"\n')
    with pytest.raises(InvalidConfig) as caught:
        config.section("adapters", "vendor", Vendor)
    assert [problem.key for problem in caught.value.problems] == [
        "adapters.vendor.retires",
        "adapters.vendor.retries",
    ]
    assert "Did you mean adapters.vendor.retries?" in str(caught.value)
    with pytest.raises(InvalidConfig, match=r"plugins\.needy\.city is missing"):
        config.section("plugins", "needy", Needy)


def test_a_variable_reaches_a_plugin_with_a_hyphen(tmp_path):
    """A variable's name cannot contain ``-``: ``_`` replaces it."""
    environ = {"TRUNKLINE_PLUGINS__WEB_SEARCH__RETRIES": "4"}
    for text in ("", "[plugins.web-search]\nretries = 1\n"):
        config = load(tmp_path, text, environ=environ)
        assert config.section("plugins", "web-search", Vendor).retries == 4


def test_sections_without_an_owner_are_refused(tmp_path):
    """A section with no plugin behind it is found, with the near miss."""
    config = load(tmp_path, "[adapters.opnai]\nx = 1\n[plugins.dice]\n")
    (problem,) = config.unclaimed([("adapters", "openai"), ("plugins", "dice")])
    assert problem.key == "adapters.opnai"
    assert problem.hint == "Did you mean adapters.openai?"


def test_a_purpose_in_the_wrong_file_is_answered_with_the_right_one(tmp_path):
    """``[models]`` of trunkline.toml has prices and windows, ``[models]`` of preferences.toml has the purposes."""
    with pytest.raises(InvalidConfig) as caught:
        load(tmp_path, '[models]\nsummary = "openai/tiny"\n')
    assert "preferences.toml" in caught.value.hint


@pytest.mark.parametrize(
    ("written", "misspelled"),
    [
        ("plugins.budgets", True),
        ("plugins.redacton", True),
        ("adapters.opnai", True),
        ("adapters.ollama", False),
        ("plugins.gone", False),
    ],
)
def test_a_section_with_almost_the_name_of_another_is_a_misspelling(tmp_path, written, misspelled):
    """A plugin that was removed is none, even if a name that begins with its own remains."""
    config = load(tmp_path, f"[{written}]\n")
    claimed = [
        ("plugins", "budget"),
        ("plugins", "redaction"),
        ("adapters", "openai"),
        ("adapters", "ollama-v1"),
    ]
    assert [problem.key for problem in config.misspelled(claimed)] == [written] * misspelled


def test_tables_under_names_of_the_writers_own(tmp_path):
    """Each model's price is a table of its own: read, checked key by key, and listed as it is written."""
    text = '[models.prices]\n"openai/x.1" = { input = 0.1, output = 2 }\n'
    config = load(tmp_path, text)
    assert config.settings.models.prices == {"openai/x.1": Price(input=0.1, output=2)}
    rows = {row.key: row.value for row in config.describe() if row.key.startswith("models.prices")}
    assert rows == {"models.prices.openai/x.1.input": "0.1", "models.prices.openai/x.1.output": "2"}
    with pytest.raises(InvalidConfig) as caught:
        load(
            tmp_path,
            "[models.prices]\na = { input = -1, output = 1 }\nb = { inptu = 1 }\nc = 3\n"
            "d = { input = 1e300, output = inf, max_output = 1000000000000000000000 }\n",
        )
    assert [problem.key for problem in caught.value.problems] == [
        "models.prices.a.input",
        "models.prices.b.inptu",
        "models.prices.b.input",
        "models.prices.b.output",
        "models.prices.c",
        "models.prices.d.input",
        "models.prices.d.output",
        "models.prices.d.max_output",
    ]
