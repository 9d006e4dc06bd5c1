"""Finds a newer release, and installs it into a virtual environment of its own. Changes nothing that is in use."""

import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

import trunkline
from trunkline.cli.install.environment import Environment
from trunkline.cli.install.pip import Pip, find_pip
from trunkline.contracts.hooks import PROJECT
from trunkline.errors import PluginError, TrunklineError
from trunkline.home.paths import make_folder, storage_errors
from trunkline.home.releases import releases_folder

STAGED = "staged.json"
"""The file in the folder of a release that says that its installation is complete. It is written last."""


@dataclass(frozen=True, slots=True)
class AvailableRelease:
    """The newest release that pip finds, and where."""

    version: str
    source: str


def require_wheel_installation() -> None:
    """Raise TrunklineError in a source checkout, whose files only its owner changes."""
    folder = Path(trunkline.__file__).parents[2]
    if (folder / "pyproject.toml").exists():
        raise TrunklineError(
            f"This Trunkline is the source checkout {folder}, which is updated with git.",
            hint=f"Stop Trunkline, back up its home (trunkline backup FILE), and run: cd {folder} && git pull && "
            "make setup",
        )


def find_newest(wheels: Path | None) -> AvailableRelease:
    """Return the newest release that pip finds, as the owner configured pip, or in a folder of wheels. Raises
    TrunklineError when there is none.
    """
    if wheels is not None:
        return _newest_wheel(wheels)
    with tempfile.TemporaryDirectory(prefix="trunkline-") as folder:
        report = Path(folder) / "report.json"
        done = _pip(sys.executable, None).run(
            "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary", ":all:",
            "--report", str(report), PROJECT,
        )  # fmt: skip
        if done.returncode:
            raise _failure("No release was found", done)
        item = json.loads(report.read_text())["install"][0]
    source = urlsplit(item["download_info"]["url"])
    return AvailableRelease(
        item["metadata"]["version"], source.hostname or str(Path(unquote(source.path)).parent)
    )


def _newest_wheel(folder: Path) -> AvailableRelease:
    found = []
    for file in folder.glob(f"{PROJECT}-*.whl"):
        try:
            found.append(parse_wheel_filename(file.name)[1])
        except InvalidWheelFilename:
            continue
    if not found:
        raise TrunklineError(
            f"There is no wheel of Trunkline in {folder}.",
            hint=f"Name the folder that has a file {PROJECT}-….whl.",
        )
    return AvailableRelease(str(max(found)), str(folder.resolve()))


def stage(home: Path, release: AvailableRelease, wheels: Path | None) -> Path:
    """Install a release with the bundled plugins, and copy the plugins that the owner installed. Return its Python.

    A release that is complete already is not installed again; one that was interrupted is. Raises TrunklineError with
    what pip says, and StorageError.
    """
    folder = releases_folder(home) / release.version
    python = folder / "bin" / "python"
    if (folder / STAGED).exists():
        return python
    make_folder(folder.parent)
    with storage_errors(folder):
        shutil.rmtree(folder, ignore_errors=True)
        builder = venv.EnvBuilder(with_pip=False, symlinks=True, system_site_packages=_sees_system())
        builder.create(folder)
    platform, plugins = _installed()
    wanted = [f"{PROJECT}=={release.version}", *platform, *_needs(plugins)]
    done = _pip(str(python), wheels).run("install", "--quiet", "--only-binary", ":all:", *wanted)
    if done.returncode:
        raise _failure(f"Trunkline {release.version} cannot be installed", done)
    with storage_errors(folder):
        for plugin in plugins:
            _copy_plugin(plugin, _site_of(folder))
        (folder / STAGED).write_text(json.dumps({"version": release.version}) + "\n")
    return python


def is_staged(home: Path, version: str) -> bool:
    """Report whether a release is completely installed."""
    return (releases_folder(home) / version / STAGED).exists()


def _pip(python: str, wheels: Path | None) -> Pip:
    try:
        return find_pip(python=python, wheels=wheels)
    except PluginError as error:
        raise TrunklineError(error.sentence, hint=error.hint) from error


def _installed() -> tuple[list[str], list[Distribution]]:
    """Return the names of the bundled distributions of this environment, and the other plugins in it."""
    environment = Environment.current()
    own = Path(sysconfig.get_paths()["purelib"]).resolve()
    here = {
        name: dist
        for name, dist in environment.distributions.items()
        if Path(str(dist.locate_file(""))).resolve() == own
    }
    bundled = environment.platform
    plugins = [name for name, dist in here.items() if any(one.group == PROJECT for one in dist.entry_points)]
    return (
        sorted(name for name in plugins if name in bundled and name != PROJECT),
        [here[name] for name in sorted(plugins) if name not in bundled],
    )


def _needs(plugins: Iterable[Distribution]) -> Iterator[str]:
    """Yield the requirements of plugins: pip then refuses a release that one of them cannot work with."""
    for plugin in plugins:
        for text in plugin.requires or ():
            try:
                need = Requirement(text)
            except InvalidRequirement:
                continue
            if need.url is None and (need.marker is None or need.marker.evaluate({"extra": ""})):
                need.marker = None
                yield str(need)


def _copy_plugin(plugin: Distribution, site: Path) -> None:
    """Copy the files of a plugin, as its owner agreed to them, from this environment into that of a release."""
    for file in plugin.files or ():
        if ".." in file.parts or file.parts[0] == "__pycache__" or file.suffix == ".pyc":
            continue
        source, target = Path(str(plugin.locate_file(file))), site / file
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def _site_of(folder: Path) -> Path:
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    return Path(paths["purelib"])


def _sees_system() -> bool:
    """Report whether this environment uses the packages of the system, so that a release does, too."""
    try:
        text = (Path(sys.prefix) / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return False
    return "include-system-site-packages = true" in text.lower()


def _failure(what: str, done: "subprocess.CompletedProcess[str]") -> TrunklineError:
    said = [line.removeprefix("ERROR: ").strip() for line in done.stderr.splitlines() if line.strip()]
    return TrunklineError(
        f"{what}. pip says: {' / '.join(said[-4:])[:800] or f'exit status {done.returncode}'}",
        hint="Nothing was changed. Check the network and the settings of pip, or give the wheels: --from FOLDER",
    )
