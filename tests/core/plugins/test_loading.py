"""Finding and loading plugins: a broken one is reported and affects no other."""

import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import trunkline
from trunkline.api.gateway import SendMessage
from trunkline.errors import PluginError

GOOD = """
    import trunkline

    @trunkline.tool(effect="read")
    def greet(name: str) -> str:
        "Greet somebody."
        return f"Hello {name}"

    @trunkline.hookimpl
    def trunkline_tools():
        return [greet]
"""


def tools(plugins):
    return {owned.item.spec.name: owned.owner for owned in plugins.tools()}


def test_an_installed_plugin_is_loaded(install, load, state):
    """A distribution with an entry point in the group ``trunkline`` is found, and its items know their owner."""
    module = install("acme-greeter", GOOD, name="greeter")
    plugins = load()
    assert tools(plugins)["greet"] == "acme-greeter"
    found = state(plugins, "acme-greeter")
    assert (found.status, found.name, found.version, found.where) == ("loaded", "greeter", "1.2.3", module)
    assert found.hooks == ("trunkline_tools",)


def test_each_worker_has_its_own_instance_of_a_class(install, load, tmp_path):
    """What one worker's plugin remembers does not reach the same plugin of another worker."""
    module = install(
        "acme-counter",
        """
        import trunkline

        class Plugin:
            calls = 0

            @trunkline.hookimpl
            def trunkline_select_model(self, turn, preference):
                self.calls += 1
                return f"{preference}-{self.calls}"
        """,
    )
    points = tmp_path / "site-packages" / "acme_counter-1.2.3.dist-info" / "entry_points.txt"
    points.write_text(f"[trunkline]\ncounter = {module}:Plugin\n")
    one, other = load(), load()
    assert [one.select_model(None, "m"), one.select_model(None, "m"), other.select_model(None, "m")] == [
        "m-1",
        "m-2",
        "m-1",
    ]


def test_a_plugin_that_changed_is_validated_again(install, load, state):
    """A worker that starts after an upgrade judges the new code, not what another worker found in the old one."""
    module = install("acme-greeter", GOOD)
    assert state(load(), "acme-greeter").hooks == ("trunkline_tools",)
    install(
        "acme-greeter",
        "import trunkline\n@trunkline.hookimpl\ndef trunkline_tool():\n    return []",
        module=module,
    )
    found = state(load(), "acme-greeter")
    assert (found.status, found.reason) == ("refused", "There is no hook trunkline_tool.")


def test_an_object_is_a_plugin_only_once(load, state):
    """Two names for the same object would double all that it does."""

    class Plugin:
        @trunkline.hookimpl
        def trunkline_tools(self):
            return []

    plugin = Plugin()
    found = state(load(extra=(plugin, plugin)), "Plugin-2")
    assert (found.status, found.reason) == ("refused", "It is the same object as the plugin Plugin.")


OUTDATED = {
    "name of the face": (
        "from trunkline import Meant",
        "trunkline.Meant is now trunkline.api.tool.CanonicalCall.",
    ),
    "attribute": (
        "import trunkline\nclass A(trunkline.ModelAdapter): pass",
        "trunkline.ModelAdapter is now trunkline.api.model.ModelAdapter.",
    ),
    "module": (
        "from trunkline.abc.tools import (\n    Meant,\n    Tool,\n)",
        "trunkline.abc.tools.Meant is now trunkline.api.tool.CanonicalCall; "
        "trunkline.abc.tools.Tool is now trunkline.Tool.",
    ),
    "package": (
        "from trunkline.subjects import LENT_CALL",
        "trunkline.subjects.LENT_CALL is now trunkline.api.tool.DELEGATED_CALL_TOOL.",
    ),
    "name in a module that stays": (
        "from trunkline.cli.output import say",
        "trunkline.cli.output.say is now trunkline.api.cli.print_text.",
    ),
    "inside": (
        "from trunkline.memory.log_book import LogBook",
        "trunkline.memory.log_book.LogBook is not public any more.",
    ),
    "removed": (
        "from trunkline.api.store import LogStore",
        'trunkline.api.store.LogStore is gone: "trunkline plugins new store" writes a whole store '
        "(docs/how-to/write-a-store.md).",
    ),
    "removed attribute": (
        "import trunkline\nclass Notes(trunkline.LogStore): pass",
        'trunkline.LogStore is gone: "trunkline plugins new store" writes a whole store '
        "(docs/how-to/write-a-store.md).",
    ),
    "option": (
        "import trunkline\n@trunkline.tool(effect='exec', look=True)\ndef t() -> str: 'Do.'",
        "look of @tool is now read_only.",
    ),
    "decorator": (
        "import trunkline\n@trunkline.tool(effect='read')\ndef t() -> str: 'Do.'\n@t.shows\ndef p(): pass",
        "shows of @tool is now FunctionTool.previewer.",
    ),
    "whole module": ("import trunkline.latch", "there is no module trunkline.latch now."),
}


@pytest.mark.parametrize("kind", sorted(OUTDATED))
def test_a_plugin_for_the_old_api_is_refused_with_the_new_names(sources, load, state, kind):
    """Each old import is named with its new place, and the other plugins load."""
    text, reported = OUTDATED[kind]
    (sources / "old.py").write_text(f'"""Old."""\n{text}\n')
    found = state(load(), "file:old")
    assert (found.status, found.reason) == ("refused", f"It is written for another version: {reported}")
    assert "docs/reference/api.md" in found.hint


BROKEN = {
    "import": ("raise RuntimeError('no such device')", "failed", "RuntimeError: no such device"),
    "exit": ("import sys; sys.exit('bye')", "failed", "SystemExit: bye"),
    "syntax": ("def (", "failed", "SyntaxError"),
    "missing": ("import nonexistent_vendor_sdk", "failed", "No module named 'nonexistent_vendor_sdk'"),
    "async": (
        "import trunkline\n@trunkline.hookimpl\nasync def trunkline_tools():\n    return []",
        "refused",
        "trunkline_tools is `async def`, but hooks are synchronous declarations.",
    ),
    "unknown": (
        "import trunkline\n@trunkline.hookimpl\ndef trunkline_tool():\n    return []",
        "refused",
        "There is no hook trunkline_tool.",
    ),
    "unmarked": ("def trunkline_tools():\n    return []", "refused", "trunkline_tools is not marked."),
    "arguments": (
        "import trunkline\n@trunkline.hookimpl\ndef trunkline_tools(config):\n    return []",
        "refused",
        "trunkline_tools has no argument config.",
    ),
    "wrapper": (
        "import trunkline\n@trunkline.hookimpl(wrapper=True)\ndef trunkline_tools():\n    return (yield)",
        "refused",
        "trunkline_tools is a wrapper",
    ),
    "empty": ("x = 1", "refused", "It implements no hook."),
    "class": ("class Plugin: ...", "refused", "It implements no hook."),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plugin_affects_only_itself(install, load, state, kind):
    """For any fault in a plugin, the others work and the report names the fault and the fix."""
    source, status, reason = BROKEN[kind]
    install("acme-broken", source)
    install("acme-good", GOOD)
    plugins = load(worker="tools")
    found = state(plugins, "acme-broken")
    assert found.status == status
    assert reason in found.reason
    assert found.hint
    assert tools(plugins)["greet"] == "acme-good"


def test_refusals_explain_the_fix(install, load, state):
    """The hints say what to write instead."""
    for kind, hint in {
        "async": "Write `def`",
        "unknown": "Did you mean trunkline_tools?",
        "unmarked": "Write @trunkline.hookimpl above it.",
        "arguments": "It may take: settings.",
        "wrapper": "yield a middleware",
    }.items():
        install(f"acme-{kind}", BROKEN[kind][0])
        assert hint in state(load(), f"acme-{kind}").hint


@pytest.fixture
def interruptible():
    """Ctrl-C interrupts, also where a shell started the tests in the background, deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_during_an_import_is_not_swallowed(install, load):
    """Ctrl-C while plugins load ends the program; it is no fault of the plugin."""
    install("acme-slow", "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(1)")
    with pytest.raises(KeyboardInterrupt):
        load()


def test_a_disabled_plugin_is_not_imported(install, load, state):
    """``[plugins] disabled`` takes the distribution's or the entry point's name, in any spelling."""
    for dist, written in (("acme-one", "Acme_One"), ("acme-two", "two")):
        module = install(dist, "raise RuntimeError", name=dist.removeprefix("acme-"))
        plugins = load(f'[plugins]\ndisabled = ["{written}"]\n')
        assert state(plugins, dist).status == "disabled"
        assert module not in sys.modules


def test_an_unknown_disabled_name_is_reported(install, load):
    """A typo in ``disabled`` would leave a plugin on: it is a problem of the configuration."""
    install("acme-good", GOOD)
    problems = load('[plugins]\ndisabled = ["acme-god"]\n').config_problems()
    assert any(
        "'acme-god'" in str(problem) and "Did you mean acme-good?" in str(problem) for problem in problems
    )


@pytest.mark.parametrize("reason", ["it is not installed.", "RuntimeError: no such device", "disabled"])
def test_a_required_plugin_must_be_there(install, load, reason):
    """A worker refuses to start without it and says why; without a worker the report does."""
    text = '[plugins]\nrequired = ["acme-guard"]\n'
    if "device" in reason:
        install("acme-guard", BROKEN["import"][0])
    elif reason == "disabled":
        install("acme-guard", GOOD)
        text += 'disabled = ["acme-guard"]\n'
    with pytest.raises(PluginError, match=reason) as caught:
        load(text, worker="tools")
    assert "acme-guard" in caught.value.sentence
    assert load(text).report.missing == ("acme-guard",)


def test_a_present_required_plugin_is_loaded(install, load):
    """A successful load adds no report."""
    install("acme-guard", GOOD)
    assert load('[plugins]\nrequired = ["Acme.Guard"]\n', worker="tools").report.missing == ()


def test_objects_passed_to_the_manager_are_plugins(load):
    """Tests and hosts hand in modules or objects; two of a kind get owners of their own; a class is refused."""

    class Models:
        @trunkline.hookimpl
        def trunkline_route(self, message):
            return None

    plugins = load(extra=(Models(), Models(), Models))
    states = [state for state in plugins.report.plugins if state.owner.startswith("Models")]
    assert [(state.owner, state.status) for state in states] == [
        ("Models", "loaded"),
        ("Models-2", "loaded"),
        ("Models-3", "refused"),
    ]


def test_managers_share_nothing(load):
    """Each worker makes its own: what one loads, another does not see."""

    @trunkline.hookimpl
    def trunkline_route(message):
        return "garden"

    message = SendMessage(content="hi")
    assert load(extra=(SimpleNamespace(trunkline_route=trunkline_route),)).route(message) == "garden"
    assert load().route(message) is None


def test_two_entry_points_of_one_distribution(install, load, tmp_path):
    """Each has an owner of its own, so that neither hides the other."""
    module = install("acme-pair", GOOD)
    info = tmp_path / "site-packages" / "acme_pair-1.2.3.dist-info"
    (tmp_path / "site-packages" / f"{module}_b.py").write_text("raise RuntimeError")
    (info / "entry_points.txt").write_text(f"[trunkline]\na = {module}\nb = {module}_b\n")
    found = {state.owner: state.status for state in load().report.plugins if "pair" in state.owner}
    assert found == {"acme-pair:a": "loaded", "acme-pair:b": "failed"}


@pytest.mark.parametrize("points", ["[trunkline]\nno equals sign\n", "[trunkline]\nx = not a module!\n"])
def test_damaged_metadata_affects_only_its_distribution(install, load, tmp_path, points):
    """A distribution with unreadable entry points, or without metadata, is reported as failed."""
    install("acme-good", GOOD)
    info = tmp_path / "site-packages" / "acme_damaged-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(points)
    plugins = load()
    assert tools(plugins)["greet"] == "acme-good"
    assert any("damaged" in state.owner + state.where for state in plugins.report.unusable)


def test_an_object_with_failing_attributes_is_refused(load, state):
    """Even a plugin whose attributes raise costs only itself."""

    class Cursed:
        @property
        def trunkline_tools(self):
            raise RuntimeError("do not look")

    assert state(load(extra=(Cursed(),)), "Cursed").status == "refused"


def test_a_module_may_hold_objects_with_failing_attributes(install, load, state):
    """An unbound proxy, as some libraries have them, is no hook and causes no error."""
    install(
        "acme-lazy",
        f"""{GOOD}
    class Proxy:
        def __getattr__(self, name):
            raise RuntimeError("working outside of a request")

    request = Proxy()
    """,
    )
    plugins = load()
    assert tools(plugins)["greet"] == "acme-lazy"
    assert state(plugins, "acme-lazy").status == "loaded"


def test_the_example_package_works_as_a_third_party_would_install_it(load, tmp_path, monkeypatch):
    """docs/examples/trunkline-dice brings its tool by the entry point in its pyproject, and its own test passes."""
    import tomllib

    example = Path(__file__).parents[3] / "docs/examples/trunkline-dice"
    project = tomllib.loads((example / "pyproject.toml").read_text())["project"]
    info = tmp_path / "trunkline_dice-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = "".join(f"{name} = {value}\n" for name, value in project["entry-points"]["trunkline"].items())
    (info / "entry_points.txt").write_text(f"[trunkline]\n{points}")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(example / "src"))
    assert tools(load())["roll_dice"] == "trunkline-dice"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:trunkline", str(example)],
        env={"PYTHONPATH": str(example / "src"), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_module_that_a_plugin_imported_is_not_searched_for_hooks(load):
    """A public module looks in all others for a name that it does not have, which took a fifth of a start."""
    asked: list[str] = []
    imported = ModuleType("imported")
    imported.__getattr__ = asked.append  # type: ignore[method-assign]

    @trunkline.hookimpl
    def trunkline_tools() -> tuple[()]:
        return ()

    plugin = SimpleNamespace(imported=imported, trunkline_tools=trunkline_tools)
    plugins = load(extra=(plugin,))
    assert "loaded" in [one.status for one in plugins.report.plugins if one.hooks == ("trunkline_tools",)]
    assert not [name for name in asked if name.startswith("trunkline")]
