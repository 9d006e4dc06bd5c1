"""Installing plugins: the text shown, the required consent, the pinned files, and the refusals despite consent."""

import hashlib
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from trunkline.home.paths import Home
from trunkline.home.run_file import instance_lock

from .conftest import Place

pytestmark = pytest.mark.timeout(300)

MARKS = "from pathlib import Path\nPath({0!r}).touch()\n"


def test_requested_permissions_are_shown_and_files_pinned(place: Place) -> None:
    """A wheel with all that it asks for; afterwards it takes part, by version and hash in plugins.toml."""
    file = place.tool("sky")
    done = place.install(file, "--yes")
    assert done.returncode == 0, done.stderr
    for line in (
        "acme-sky 1.0, from a wheel",
        "hooks      tools",
        "effects    read",
        "sky.example",
        "SKY_KEY",
    ):
        assert line in done.stdout, done.stdout
    assert place.plugins()["acme-sky"]["status"] == "loaded"
    pin = tomllib.loads((place.home / "plugins.toml").read_text())["acme-sky"]
    assert pin["version"] == "1.0" and pin["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert pin["agreed"]["effects"] == ["read"] and str(place.wheels) not in str(pin)
    said = place.trunkline(
        "say", "/tool sky_look", TRUNKLINE_MONITOR__ENGINE_PORT="0", TRUNKLINE_GATEWAY__PORT="0"
    )
    assert "seen by sky" in said.stdout, said.stderr


def test_nothing_is_installed_or_run_without_confirmation(place: Place, tmp_path: Path) -> None:
    """The requested permissions are shown, none of the plugin's code runs, and the exit status reports the refusal."""
    mark = tmp_path / "imported"
    place.tool("sky", files={"acme_sky/__init__.py": MARKS.format(str(mark))})
    done = place.install("acme-sky")
    assert (
        done.returncode == 1 and "nothing was installed" in done.stderr and "effects    read" in done.stdout
    )
    assert not place.has("acme_sky") and not mark.exists() and not (place.home / "plugins.toml").exists()


def test_a_person_agrees_at_the_terminal(place: Place, at_terminal: Callable[..., str]) -> None:
    """Enter means no; y means yes."""
    file = str(place.tool("sky"))
    assert "Nothing was installed." in at_terminal(
        "", "plugins", "install", file, "--wheels", str(place.wheels)
    )
    assert not place.has("acme_sky")
    assert "Installed acme-sky 1.0." in at_terminal(
        "y", "plugins", "install", file, "--wheels", str(place.wheels)
    )
    assert place.has("acme_sky")


def test_a_plugin_without_declared_permissions_needs_confirmation(
    place: Place, at_terminal: Callable[..., str]
) -> None:
    """--yes alone does not take it, nor does y: its name has to be typed, and what its source shows is shown."""
    file = place.tool("sky", effect="exec", manifest=None)
    refused = place.install(file, "--yes")
    assert refused.returncode == 1 and "--yes --undeclared" in refused.stderr
    assert "Found in its source: tools, exec." in refused.stdout
    assert "Nothing was installed." in at_terminal(
        "y", "plugins", "install", str(file), "--wheels", str(place.wheels)
    )
    assert "Installed acme-sky" in at_terminal(
        "acme-sky", "plugins", "install", str(file), "--wheels", str(place.wheels)
    )


def test_dependencies_are_removed_with_the_plugin_unless_needed(place: Place) -> None:
    """A dependency is shown, pinned, and removed with the last plugin that needs it."""
    place.wheel("acme-sextant", {"acme_sextant.py": ""})
    for name in ("sky", "sea"):
        place.tool(name, requires=("acme-sextant>=1",))
    assert "brings     acme-sextant 1.0" in place.install("acme-sky==1.0", "--yes").stdout
    assert place.install("acme-sea", "--yes").returncode == 0
    gone = place.trunkline("plugins", "remove", "sky", "--yes")
    assert gone.returncode == 0 and "This removes acme-sky." in gone.stdout, gone.stdout + gone.stderr
    assert place.has("acme_sextant") and not place.has("acme_sky")
    assert (
        "This removes acme-sea, acme-sextant." in place.trunkline("plugins", "remove", "sea", "--yes").stdout
    )
    assert not place.has("acme_sextant") and not place.has("acme_sea")
    assert tomllib.loads((place.home / "plugins.toml").read_text()) == {}


def test_a_newer_version_is_checked_again(place: Place) -> None:
    """After consent, the new version and its dependencies replace the earlier ones."""
    place.wheel("acme-sextant", {"acme_sextant.py": ""})
    place.install(place.tool("sky", requires=("acme-sextant",)), "--yes")
    place.wheel("acme-sextant", {"acme_sextant.py": "new = True"}, version="2.0")
    newer = place.tool(
        "sky",
        effect="exec",
        manifest='hooks = ["tools"]\neffects = ["exec"]',
        version="2.0",
        requires=("acme-sextant>=2",),
    )
    (packages,) = place.python.parent.parent.glob("lib/python*/site-packages")
    (packages / "acme_sky" / "trunkline-plugin.toml").write_text('hooks = ["tools"]\neffects = ["exec"]')
    found = place.plugins()["acme-sky"]
    assert found["status"] == "failed" and "more than was agreed to: effects exec" in found["reason"]
    done = place.install(newer, "--yes")
    assert "replaces   1.0" in done.stdout and "acme-sextant 2.0" in done.stdout, done.stderr
    assert (
        place.plugins()["acme-sky"]["version"] == "2.0" and place.plugins()["acme-sky"]["status"] == "loaded"
    )


ADAPTER = """
import trunkline
from trunkline.api.model import Finish, ModelAdapter, Text

class Acme(ModelAdapter):
    name = "acme"

    async def stream(self, request):
        yield Text("the plugin answers")
        yield Finish(reason="stop")

@trunkline.hookimpl
def trunkline_models():
    return [Acme()]
"""


def test_an_adapter_that_is_merely_installed_is_given_no_text(place: Place) -> None:
    """The home answered offline before, and does so until its owner chooses the adapter by name."""
    manifest = 'hooks = ["models"]\n'
    file = place.tool("model", manifest=manifest, files={"acme_model/__init__.py": ADAPTER})
    assert place.install(file, "--yes").returncode == 0
    environ = {"TRUNKLINE_GATEWAY__PORT": "0"}
    assert "I answer without a model" in place.trunkline("say", "hello", **environ).stdout
    chosen = place.trunkline("say", "hello", **environ, TRUNKLINE_RUNTIME__PROVIDER_ADAPTER="acme")
    assert "the plugin answers" in chosen.stdout, chosen.stderr


def attack(place: Place, kind: str) -> str | Path:
    """A distribution whose installation would harm the platform or another plugin."""
    match kind:
        case "needs another version":
            return place.tool("sky", requires=("msgspec<0.1",))
        case "brings one that needs another version":
            place.wheel("acme-sextant", {"acme_sextant.py": ""}, requires=("msgspec<0.1",))
            return place.tool("sky", requires=("acme-sextant",))
        case "is called like the platform's":
            return place.wheel(
                "trunkline-files", {"trunkline_sky.py": ""}, point="trunkline_sky", version="9.0"
            )
        case "brings another's module":
            return place.tool("sky", files={"msgspec/__init__.py": "stolen = True"})
        case "brings the platform's module":
            return place.tool("sky", files={"trunkline/__init__.py": "stolen = True"})
        case "runs at every start":
            return place.tool("sky", files={"acme.pth": "import acme_sky"})
        case "runs at every start, as data":
            return place.tool("sky", files={f"{data(place)}/acme.pth": "import acme_sky"})
        case "is imported at every start, as data":
            return place.tool("sky", files={f"{data(place)}/usercustomize.py": ""})
        case "is a second distribution":
            other = {
                "METADATA": "Name: acme-moon\nVersion: 1\n",
                "entry_points.txt": "[trunkline]\nm = acme_sky\n",
            }
            folder = "acme_sky-1.0.data/purelib/acme_moon-1.dist-info"
            return place.tool("sky", files={f"{folder}/{name}": text for name, text in other.items()})
        case "is an old distribution besides":
            return place.tool("sky", files={"acme_moon.egg-info/PKG-INFO": "Name: acme-moon\nVersion: 1\n"})
        case "takes over a namespace":
            return place.tool("sky", files={"opentelemetry/__init__.py": ""})
        case "takes over a namespace in a namespace":
            return place.tool("sky", files={"opentelemetry/exporter/__init__.py": ""})
        case "takes an entry point's place":
            group = "[opentelemetry_context]\ncontextvars_context = acme_sky:Context"
            return place.tool("sky", scripts=f"sky = acme_sky:main\n{group}")
        case "is called like a plugin of the platform":
            return place.wheel("acme-files", {"acme_files.py": ""}, point="acme_files")
        case "needs something from an address":
            project = place.home.parent / "moon"
            project.mkdir()
            (project / "setup.py").write_text(MARKS.format(str(project / "was run")))
            return place.tool("sky", requires=(f"acme-moon @ {project.as_uri()}",))
        case "is imported at every start":
            return place.tool("sky", files={"sitecustomize.py": ""})
        case "takes a program's place":
            return place.tool("sky", scripts="python = acme_sky:main")
        case "writes beside":
            return place.tool("sky", files={"acme_sky-1.0.data/data/bin/python": "#!/bin/sh"})
        case "is no plugin":
            return place.wheel("acme-sky", {"acme_sky.py": ""})
        case "is no wheel":
            (place.wheels / "acme_sky-1.0-py3-none-any.whl").write_text("no archive")
            return place.wheels / "acme_sky-1.0-py3-none-any.whl"
        case "has a manifest that cannot be understood":
            return place.tool("sky", manifest="hooks = tools")
        case "is an address":
            return "acme-sky @ https://sky.example/acme_sky-1.0-py3-none-any.whl"
        case _:
            return "acme-nowhere"


def data(place: Place) -> str:
    """A folder of a wheel whose files come to lie among the modules."""
    (packages,) = place.python.parent.parent.glob("lib/python*/site-packages")
    return f"acme_sky-1.0.data/data/lib/{packages.parent.name}/site-packages"


SAID = {
    "needs another version": "acme-sky 1.0 needs msgspec<0.1 (here is ",
    "brings one that needs another version": "acme-sextant 1.0 depends on msgspec<0.1",
    "is called like the platform's": "trunkline-files belongs to the platform",
    "brings another's module": "contains a module msgspec that another installed package provides",
    "brings the platform's module": "contains a module trunkline that another installed package provides",
    "runs at every start": "at the start of every Python of this environment (acme.pth)",
    "is imported at every start": "(sitecustomize.py)",
    "runs at every start, as data": "at the start of every Python of this environment (acme.pth)",
    "is imported at every start, as data": "(usercustomize.py)",
    "is a second distribution": "also contains the metadata of another distribution (acme_moon-1.dist-info)",
    "is an old distribution besides": "also contains the metadata of another distribution (acme_moon.egg-info)",
    "takes over a namespace": "contains a module opentelemetry that another installed package provides",
    "takes over a namespace in a namespace": "contains a module opentelemetry.exporter that another installed "
    "package provides",
    "takes an entry point's place": "entry point contextvars_context in the group opentelemetry_context, as open",
    "is called like a plugin of the platform": "entry point files in the group trunkline, as trunkline-files has",
    "needs something from an address": "acme-sky needs acme-moon from an address",
    "takes a program's place": "would overwrite python in",
    "writes beside": "would overwrite python in",
    "is no plugin": "is not a plugin: it has no entry point",
    "is no wheel": "is not a valid wheel",
    "has a manifest that cannot be understood": "cannot be understood",
    "is an address": "cannot be installed from a URL",
    "is not there": "acme-nowhere is not available",
}


@pytest.mark.parametrize("kind", SAID)
def test_a_plugin_that_would_break_others_is_refused(place: Place, kind: str) -> None:
    """Despite consent, one sentence names the conflict, and nothing is installed."""
    (packages,) = place.python.parent.parent.glob("lib/python*/site-packages")
    before = sorted(packages.iterdir())
    done = place.install(attack(place, kind), "--yes", "--undeclared")
    assert done.returncode == 1 and SAID[kind] in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and "Hint:" in done.stderr
    assert sorted(packages.iterdir()) == before and not (place.home / "plugins.toml").exists()
    assert not list(place.home.parent.glob("**/was run"))


def test_a_missing_pip_is_reported_with_a_hint(place: Place, tmp_path: Path) -> None:
    """In an environment without pip, on a machine without pip, one sentence reports it."""
    broken = tmp_path / "broken" / "pip"
    broken.mkdir(parents=True)
    (broken / "__init__.py").touch()
    done = place.trunkline("plugins", "install", "acme-sky", PYTHONPATH=str(broken.parent), PATH="/nowhere")
    assert done.returncode == 1 and "Installing needs pip or uv, and neither is available." in done.stderr


def test_disable_and_enable_keep_the_rest_of_the_file(place: Place) -> None:
    """Comments and other settings are unchanged; a disabled plugin is not loaded. A running platform continues."""
    (place.home / "run").mkdir(parents=True)
    settings = place.home / "trunkline.toml"
    settings.write_text("# mine\n[gateway]\nport = 9000  # not 8420\n")
    with instance_lock(Home.at(place.home)):
        reported = place.trunkline("plugins", "disable", "dice")
    assert (
        "trunkline-dice is disabled." in reported.stdout
        and "Restart it to apply the change" in reported.stdout
    )
    assert place.plugins()["trunkline-dice"]["status"] == "disabled"
    assert "disabled already" in place.trunkline("plugins", "disable", "trunkline-dice").stdout
    assert place.trunkline("plugins", "enable", "trunkline_dice").returncode == 0
    assert place.plugins()["trunkline-dice"]["status"] == "loaded"
    assert "# mine\n[gateway]\nport = 9000  # not 8420\n" in settings.read_text()


def test_a_required_plugin_is_not_uninstalled(place: Place) -> None:
    """A plugin that is required, provides the memory store, or was installed another way is kept; a wrong name gets
    the nearest one."""
    place.home.mkdir()
    (place.home / "trunkline.toml").write_text(
        '[plugins]\nrequired = ["files"]\n[memory]\nstore = "trunkline-onefile"\n'
    )
    for arguments, said in {
        ("disable", "files"): "is in [plugins] required",
        ("disable", "onefile"): "keeps the memory",
        ("remove", "dice", "--yes"): "was not installed with",
        ("disable", "dcie"): "dice",
    }.items():
        done = place.trunkline("plugins", *arguments)
        assert done.returncode == 1 and said in done.stderr, (arguments, done.stderr)
    (place.home / "trunkline.toml").unlink()
    done = place.trunkline("plugins", "disable", "git-store")
    assert done.returncode == 1 and "keeps the memory" in done.stderr
