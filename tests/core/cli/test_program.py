"""The program as a whole: help, errors, exit statuses, and its imports."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points

import click
import pytest

from trunkline.cli.command import DefaultCommandGroup
from trunkline.cli.errors import run_and_report
from trunkline.cli.main import COMMANDS, cli
from trunkline.errors import TrunklineError
from trunkline.plugins.discovery import bundled_distributions
from trunkline_bus import RemoteFault

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def all_commands() -> list[tuple[str, click.Command]]:
    """Every command and those within it, the ones of plugins too, each with the words that call it."""
    found: list[tuple[str, click.Command]] = []
    waiting: list[tuple[str, click.Command | None]] = [("", cli)]
    while waiting:
        path, command = waiting.pop()
        assert command is not None, path
        found += [(path, command)] if path else []
        if isinstance(command, click.Group):
            context = click.Context(command, info_name=path)
            names = command.list_commands(context)
            waiting += [(f"{path} {name}".strip(), command.get_command(context, name)) for name in names]
    return sorted(found, key=lambda one: one[0])


def test_every_command_has_a_help_with_examples() -> None:
    """--help of each command and sub-command ends with examples of that very command."""
    for name, command in all_commands():
        help_text = command.get_help(click.Context(command, info_name=name))
        assert "Examples:" in help_text, name
        assert f"trunkline {name}" in help_text.partition("Examples:")[2], name


CONVERSE = {"attach", "chat", "conversations open"}
SERVE = {"up", "run", "mcp serve", "mcp login", "remote invite", "remote join", "remote serve"}
PRINT_A_TEXT = {
    "auth export", "completion", "remote accounts", "results show", "service logs", "workflows schema",
}  # fmt: skip
CHANGE_SETTINGS = {
    "mcp add", "mcp remove", "remote revoke", "service install", "service restart", "service uninstall",
    *(f"plugins {name}" for name in ("disable", "enable", "install", "new", "release", "remove")),
}  # fmt: skip


def test_every_command_prints_json_for_scripts() -> None:
    """Except those that converse, serve, print a text for another program, or change settings of this machine."""
    leaves = {
        name: {option for one in command.params for option in one.opts}
        for name, command in all_commands()
        if not isinstance(command, click.Group)
    }
    without = {name for name, options in leaves.items() if "--json" not in options}
    assert without == CONVERSE | SERVE | PRINT_A_TEXT | CHANGE_SETTINGS


def groups() -> list[tuple[str, click.Group]]:
    """The groups that have a command ``list``."""
    every = [(path, one) for path, one in all_commands() if isinstance(one, click.Group)]
    return [(path, one) for path, one in every if "list" in one.list_commands(click.Context(one))]


def examples() -> list[tuple[str, list[str]]]:
    """Return each example of a help text, with the arguments that the shell would pass."""
    found = []
    for name, command in all_commands():
        text = getattr(command, "examples", "")
        for line in filter(None, map(str.strip, text.splitlines())):
            inner = re.sub(r'.*"\$\((.+)\)"', r"\1", line)
            words = shlex.split(re.split(r" [<>]+ ", inner)[0], comments=True)
            while "|" in words:
                at = words.index("|")
                words = words[:at] if words[0] == "trunkline" else words[at + 1 :]
            assert "trunkline" in words, f"{name}: {line}"
            found.append((f"{name}: {line}", words[words.index("trunkline") + 1 :]))
    return found


def test_every_example_is_a_command_that_there_is() -> None:
    """Each example in a help text names existing commands and options with their required values; none is run."""
    lines = examples()
    assert len(lines) > 100
    for line, words in lines:
        command: click.Command | None = cli
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            if isinstance(command, DefaultCommandGroup) and words[0] not in command.commands:
                words = [command.default, *words]
            command, words = command.get_command(click.Context(command), words[0]), words[1:]
        assert command is not None, line
        try:
            command.make_context(str(command.name), [*words])
        except click.BadParameter as wrong:  # an example's file is not here
            absent = wrong.param is not None and isinstance(wrong.param.type, click.Path)
            assert absent and "does not exist" in wrong.message, f"{line}: {wrong.format_message()}"
        except click.UsageError as wrong:
            pytest.fail(f"{line}: {wrong.format_message()}")
        except click.exceptions.Exit:
            continue


def test_a_group_without_a_command_lists(trunkline: Run) -> None:
    """The plural noun alone lists its items, with the options of ``list``; the help says so."""
    there = groups()
    assert {"approvals", "mcp", "memory", "memory chunks", "tasks"} <= {name for name, _ in there}
    for name, group in there:
        bare = trunkline(*name.split())
        assert bare.returncode < 2 and "Usage:" not in bare.stdout + bare.stderr, name
        help_text = group.get_help(click.Context(group, info_name=f"trunkline {name}"))
        assert "[COMMAND]" in help_text and 'Without a command it does what "list" does.' in help_text, name
    assert trunkline("plugins").stdout == trunkline("plugins", "list").stdout
    assert json.loads(trunkline("conversations", "--json").stdout)["total"] == 0
    mistake = trunkline("conversations", "--jsn")
    assert mistake.returncode == 2 and "--json" in mistake.stderr


def test_the_help_lists_every_command_with_a_whole_line() -> None:
    """Plugins' commands too: no line ends in dots because it did not fit."""
    lines = dict(cli.help_lines())  # type: ignore[attr-defined]
    assert {"mcp", "tasks", *COMMANDS} <= set(lines)
    assert not [name for name, line in lines.items() if not line.endswith(".") or line.endswith("...")]


def test_the_list_of_commands_imports_none_of_them() -> None:
    """The help's table and the commands' own first sentences say the same thing about the same commands."""
    loaded = _modules("from trunkline.cli.main import cli, COMMANDS")
    assert not [name for name in COMMANDS if f"trunkline.cli.{name}" in loaded]


def test_the_program_starts_without_anything_heavy() -> None:
    """Modules that a command does not use are not imported: the bus, tracing, models, the terminal, storage, HTTP."""
    heavy = {
        "nats",
        "openai",
        "rich",
        "prompt_toolkit",
        "starlette",
        "uvicorn",
        "pygit2",
        "apsw",
        "tomlkit",
        "pluggy",
    }
    loaded = _modules("import trunkline, trunkline.cli.main")
    assert not heavy & loaded
    assert not {name for name in loaded if name.startswith("opentelemetry")}


SETTINGS_TABLES = {
    "trunkline_anthropic.claude_models", "trunkline_bedrock.bedrock_models", "trunkline_gemini.gemini_models",
    "trunkline_openai.parameters", "trunkline_openai.sagemaker_settings", "trunkline_openai.vendors",
}  # fmt: skip
"""Tables of vendors and models by which sections are validated."""


def test_loading_the_plugins_imports_their_settings_and_no_more() -> None:
    """The entry point of a plugin declares objects; their modules are imported when a worker asks for them."""
    groups = entry_points(group="trunkline")
    bundled = [point.module for point in groups if point.dist and point.dist.name in bundled_distributions()]
    loaded = _modules("import trunkline\n" + "\n".join(f"import {module}" for module in bundled))
    packages = {module.partition(".")[0] for module in bundled}
    own = {name for name in loaded if name.partition(".")[0] in packages}
    assert len(bundled) > 15
    assert own <= packages | set(bundled) | {f"{package}.settings" for package in packages} | SETTINGS_TABLES


UNUSED_AT_START: dict[str, set[str]] = {
    "gateway": {"websockets", "trunkline_learning.context_source", "fido2"},
    "memory": {"trunkline_files.write_tools", "trunkline_git.tools", "trunkline_shell.command_tool"},
    "monitor": {
        "websockets",
        "trunkline_learning.context",
        "trunkline_learning.learner",
        "trunkline_learning.playbook",
    },
    "tools": {"trunkline_learning.learner", "trunkline_rlm.retrieval", "trunkline_rlm.repl"},
    "channels": {"starlette", "pygit2", "trunkline_learning.learner"},
}
"""Modules that a worker does not load before something needs them: a WebSocket, a purge, a turn to learn from."""

SDKS = {"aiohttp", "anthropic", "boto3", "botocore", "google.genai", "httpx", "mcp", "ollama", "openai"}

START = """
import anyio
from trunkline.testing.platform import platform

async def main():
    async with platform(workers=[{worker!r}]):
        pass

anyio.run(main)
"""


@pytest.mark.parametrize("worker", UNUSED_AT_START)
def test_a_worker_loads_at_its_start_only_what_it_needs_then(worker: str) -> None:
    """A start loads neither a vendor's SDK nor the modules of what is off or seldom used."""
    loaded = _modules(START.format(worker=worker))
    assert f"trunkline.workers.{worker}.worker" in loaded
    assert not (UNUSED_AT_START[worker] | SDKS) & loaded


def _modules(statement: str) -> set[str]:
    reported = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys, json; print(json.dumps(list(sys.modules)))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(json.loads(reported.stdout))


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("run", "montior"), 1, ["Error: There is no worker 'montior'.", "Did you mean monitor?", "gateway, monitor"]),
        (("config", "gatway"), 1, ["Error: There is no setting 'gatway'.", "Hint: Did you mean gateway?"]),
        (("run", "tools"), 1, ["Error: There is no bus to run the worker on.", "Hint: Give --bus"]),
        (("run", "tools", "--bus", "nats://127.0.0.1:4"), 1, ["Error: ", "127.0.0.1:4"]),
        (("nonsense",), 2, ["No such command 'nonsense'"]),
        (("policies", "list"), 2, ["No such command 'policies'. Did you mean 'permissions rules'?"]),
        (("dead", "list"), 2, ["No such command 'dead'. Did you mean 'dead-letters'?"]),
        (("docter",), 2, ["No such command 'docter'", "doctor"]),
        (("memory", "serach", "beans"), 2, ["No such command 'serach'", "search"]),
        (("memory", "log"), 2, ["No such command 'log'", "Did you mean 'history'?"]),
        (("memory", "rm", "AGENT.md"), 2, ["No such command 'rm'", "Did you mean 'forget'?"]),
        (("tasks", "ls"), 2, ["No such command 'ls'", "Did you mean 'list'?"]),
        (("ask", "hello"), 2, ["No such command 'ask'", "Did you mean 'say'?"]),
        (("up", "--port", "99999"), 2, ["--port"]),
        (("plugins", "new", "tool", "Not A Name"), 1, ["'Not A Name' is not a valid name", "lower-case words"]),
        (("init", "--yes", "--adapter", "nobody"), 1, ["no model adapter 'nobody'", "There are: auto"]),
    ],
)  # fmt: skip
def test_an_error_is_a_sentence_a_hint_and_an_exit_status(
    trunkline: Run, arguments: tuple[str, ...], status: int, words: list[str]
) -> None:
    """1 for an error, 2 for wrong usage, never a traceback."""
    done = trunkline(*arguments)
    assert done.returncode == status, done.stderr
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr and not done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("memory", "search", "a\udcff"),
        ("memory", "remember", "\udcff", "--tag", "x"),
        ("memory", "show", "\udcff.md"),
        ("memory", "add", "\udcff.txt"),
        ("say", "--block", "\udcc3", "hello"),
        ("blocks", "create", "\udcff"),
        ("config", "\udcff"),
        ("\udcff",),
    ],
)
def test_bytes_that_are_no_text_are_refused_in_a_sentence(
    trunkline: Run, home, arguments: tuple[str, ...]
) -> None:  # type: ignore[no-untyped-def]
    """For every command, the error names the bytes and their position, the status is 2, and nothing is created or
    started."""
    done = trunkline(*arguments)
    number = next(at for at, word in enumerate(arguments, start=1) if not word.isascii())
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Argument {number}, '" in done.stderr and "\\x" in done.stderr and "UTF-8" in done.stderr
    assert "Traceback" not in done.stderr and not home.exists()


def test_a_wrong_setting_is_named_with_its_file_and_line(trunkline: Run, home) -> None:  # type: ignore[no-untyped-def]
    """PA-T7: the start is refused with the path of the field."""
    home.mkdir()
    (home / "trunkline.toml").write_text('[gateway]\nport = "soon"\n')
    done = trunkline("up")
    assert done.returncode == 1
    assert "gateway.port" in done.stderr and f"{home}/trunkline.toml, line 2" in done.stderr
    assert sorted(path.name for path in home.iterdir()) == ["trunkline.toml"], "nothing was made"


def test_debugging_shows_the_traceback(trunkline: Run) -> None:
    """TRUNKLINE_DEBUG=1 is for developers of the program."""
    assert "Traceback" in trunkline("run", "nobody", env={"TRUNKLINE_DEBUG": "1"}).stderr


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (TrunklineError("It rains.", hint="Take a coat."), 1, "Error: It rains.\nHint: Take a coat.\n"),
        (ExceptionGroup("g", [ExceptionGroup("h", [TrunklineError("It rains.")])]), 1, "Error: It rains.\n"),
        (
            RemoteFault("not_found", "There is nothing by that name.", "/secret/path"),
            1,
            "Error: There is nothing by",
        ),
        (click.UsageError("too many"), 2, "Error: too many\n"),
        (KeyboardInterrupt(), 130, "\n"),
        (
            ZeroDivisionError("oops"),
            1,
            "Error: Something went wrong inside Trunkline (ZeroDivisionError: oops).",
        ),
    ],
)
def test_each_kind_of_error_is_formatted_in_its_own_way(
    error: BaseException, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is one sentence and a hint, for every exception and any nesting in task groups."""

    def fail() -> int:
        raise error

    assert run_and_report(fail) == status
    printed = capsys.readouterr().err
    assert printed.startswith(said) and "Traceback" not in printed and "/secret/path" not in printed
