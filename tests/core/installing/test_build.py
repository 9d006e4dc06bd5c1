"""Installing from a folder: none of its code runs before consent, and its build reaches nothing afterwards."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import READS, TOOL, Place

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap"),
]

PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "acme-sky"
version = "1.0"
description = "Looks at the sky."

[project.entry-points.trunkline]
sky = "acme_sky"
"""

BACKEND = """
import os, pathlib, socket, sys, zipfile

ATTACK

def build_wheel(folder, config_settings=None, metadata_directory=None):
    tried = []
    for what, attempt in ATTEMPTS.items():
        try:
            attempt()
            tried.append(what)
        except OSError:
            pass
    if tried:
        sys.exit("the build reached " + ", ".join(tried))
    name = "acme_sky-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        for path in pathlib.Path("acme_sky").iterdir():
            archive.writestr(f"acme_sky/{path.name}", path.read_text() + MORE.get(path.name, ""))
        info = "acme_sky-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: acme-sky\\nVersion: 1.0\\n" + REQUIRES)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{info}/entry_points.txt", "[trunkline]\\nsky = acme_sky\\n")
        archive.writestr(f"{info}/RECORD", "")
    return name
"""
HARMLESS = "ATTEMPTS, MORE, REQUIRES = {}, {}, ''\n"


def make_project(folder: Path, attack: str = HARMLESS, manifest: str | None = READS) -> Path:
    """A plugin's project with a build backend of its own."""
    package = folder / "acme_sky"
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "backend.py").write_text(BACKEND.replace("ATTACK", attack))
    (package / "__init__.py").write_text(TOOL.format(name="sky", effect="read"))
    if manifest is not None:
        (package / "trunkline-plugin.toml").write_text(manifest)
    return folder


def test_no_code_of_a_folder_runs_before_confirmation(
    place: Place, tmp_path: Path, at_terminal: Callable[..., str]
) -> None:
    """The requested permissions are read from its files; its build backend runs after consent, and not after a
    refusal."""
    mark = tmp_path / "was run"
    project = make_project(tmp_path / "sky", f"open({str(mark)!r}, 'w').close()\n{HARMLESS}")
    done = place.install(project)
    assert done.returncode == 1 and "nothing was installed" in done.stderr
    for line in (
        "acme-sky 1.0, from a folder",
        "hooks      tools",
        "sky.example",
        "runs backend, in a sandbox",
    ):
        assert line in done.stdout
    reported = at_terminal("", "plugins", "install", str(project), "--wheels", str(place.wheels))
    assert "Nothing was installed." in reported and "Building" not in reported
    refused = place.install(project, "--yes")
    assert refused.returncode == 1 and "The build of acme-sky failed" in refused.stderr, refused.stderr
    assert not mark.exists() and not place.has("acme_sky")


def test_a_folder_is_built_and_installed_after_confirmation(place: Place, tmp_path: Path) -> None:
    """The agreed permissions are pinned, the plugin is loaded, and nothing is left in the folder."""
    project = make_project(tmp_path / "sky")
    before = sorted(project.rglob("*"))
    done = place.install(project, "--yes")
    assert done.returncode == 0 and "Installed acme-sky 1.0." in done.stdout, done.stderr
    assert place.plugins()["acme-sky"]["status"] == "loaded"
    assert sorted(project.rglob("*")) == before


def test_a_build_reaches_no_file_and_no_network(place: Place, tmp_path: Path) -> None:
    """Its backend reads no file of the person's, writes nothing beside, and finds neither network nor loopback."""
    secret = tmp_path / "secret"
    secret.write_text("mine")
    listener = subprocess.Popen(
        ["python3", "-c", "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], "
         "flush=True); s.accept()"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert listener.stdout is not None
    port = int(listener.stdout.readline())
    attack = f"""
ATTEMPTS = {{
    "a secret": lambda: open({str(secret)!r}),
    "the home": lambda: open({str(place.home / "mark")!r}, "w"),
    "the machine": lambda: open("/usr/mark", "w"),
    "loopback": lambda: socket.create_connection(("127.0.0.1", {port}), 2),
    "a network": lambda: socket.create_connection(("192.0.2.1", 80), 2),
}}
MORE, REQUIRES = {{}}, ""
"""
    try:
        done = place.install(make_project(tmp_path / "sky", attack), "--yes")
    finally:
        listener.kill()
        listener.wait()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("attack", "other"),
    [
        ("MORE = {'trunkline-plugin.toml': 'programs = [\"sh\"]'}; REQUIRES = ''", "manifest"),
        ("MORE = {}; REQUIRES = 'Requires-Dist: acme-moon\\n'", "requirements"),
    ],
)
def test_a_build_of_another_distribution_is_refused(
    place: Place, tmp_path: Path, attack: str, other: str
) -> None:
    """There was no consent to what the build alone declares, so nothing is installed."""
    done = place.install(make_project(tmp_path / "sky", f"ATTEMPTS = {{}}; {attack}\n"), "--yes")
    assert done.returncode == 1 and f"differs from what you were shown: another {other}" in done.stderr
    assert not place.has("acme_sky")


def test_a_wheel_that_is_a_link_is_none(place: Place, tmp_path: Path) -> None:
    """The build cannot have a file of the machine taken for its wheel."""
    wheel = place.tool("moon")
    project = make_project(tmp_path / "sky")
    (project / "backend.py").write_text(
        "import os\n"
        "def build_wheel(folder, *given):\n"
        f"    os.symlink({str(wheel)!r}, folder + '/acme_sky-1.0-py3-none-any.whl')\n"
    )
    done = place.install(project, "--yes")
    assert done.returncode == 1 and "made no wheel" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("line", "other", "said"),
    [
        ('version = "1.0"', 'dynamic = ["version", "dependencies"]', "leaves dependencies to its build"),
        ('name = "acme-sky"', 'name = "acme\\nsky"', "which is not a valid name"),
        ("[project", "[tool.project", "has no [project] table"),
        ("[project]", "[project", "cannot be read"),
    ],
)
def test_a_folder_that_cannot_be_read_is_not_built(
    place: Place, tmp_path: Path, line: str, other: str, said: str
) -> None:
    """Its requests are known only after the build and cannot be shown before it, so it is refused with another way."""
    project = make_project(tmp_path / "sky")
    (project / "pyproject.toml").write_text(PROJECT.replace(line, other))
    done = place.install(project, "--yes")
    assert done.returncode == 1 and said in done.stderr and "Hint:" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and not place.has("acme_sky")


FORGED = (
    'network = ["sky.example\\neffects    -\\u2028isolation  process\\u202e"]\n'
    'hooks = ["tools"]\neffects = ["read"]\n'
)


def test_a_manifest_forges_no_line(place: Place, tmp_path: Path) -> None:
    """Line breaks in the author's text are shown as blanks: one line for each request."""
    for wanted in (place.tool("sky", manifest=FORGED), make_project(tmp_path / "sky", manifest=FORGED)):
        shown = place.install(wanted).stdout.splitlines()
        assert [line for line in shown if line.startswith("effects")] == ["effects    read"]
        assert [line for line in shown if line.startswith("isolation")] == ["isolation  none"]
        assert "\u202e" not in "".join(shown)
