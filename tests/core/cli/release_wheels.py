"""Wheels of releases that do not exist, made from that of this checkout, and an installation without a download."""

import os
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

import trunkline

ROOT = Path(__file__).parents[3]
SITE = Path(sysconfig.get_paths()["purelib"])
INIT, FORMAT, STEPS = (
    "trunkline/__init__.py",
    "trunkline/config/home_format.py",
    "trunkline/home/migration_steps.py",
)
BUNDLED = ("plugins/git_store", "plugins/memory", "adapters/offline")
"""The bundled plugins that a platform needs to keep memory."""

Changes = Mapping[str, tuple[str, str]]
"""For files of a wheel, a text and what replaces it."""

NEWER_FORMAT: Changes = {
    FORMAT: ("FORMAT_VERSION = 2", "FORMAT_VERSION = 3"),
    STEPS: (
        'copies=("trunkline.toml",)),\n)',
        'copies=("trunkline.toml",)),\n    MigrationStep(3, "a newer format", record_format),\n)',
    ),
}
"""A release that changes the format of the home."""

FAILS_TO_MIGRATE: Changes = {
    "trunkline/runtime/supervisor.py": (
        "            migrate(home)\n",
        '            raise StorageError("this release is broken")\n',
    )
}
"""A release that accepts the settings and fails at the home."""

NO_GATEWAY: Changes = {
    "trunkline/workers/gateway/worker.py": (
        "        cache = BlockCache(self.context.bus)\n",
        '        raise StorageError("this release has no gateway")\n',
    )
}
"""A release that passes the trial, and does not become ready."""


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout."""
    return Path(next(WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])))


def make_release(wheel: Path, folder: Path, version: str, changes: Changes | None = None) -> Path:
    """Write the wheel of another release: that of this checkout with another version and changed files."""
    own = trunkline.__version__
    changed = {INIT: (f'__version__ = "{own}"', f'__version__ = "{version}"'), **(changes or {})}
    target = folder / wheel.name.replace(f"-{own}-", f"-{version}-")
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(target, "w") as made:
        for name in source.namelist():
            data = source.read(name)
            if name in changed:
                before, after = changed.pop(name)
                assert before.encode() in data, name
                data = data.replace(before.encode(), after.encode(), 1)
            if name.endswith(("/METADATA", "/RECORD")):
                data = data.replace(f"Version: {own}\n".encode(), f"Version: {version}\n".encode(), 1)
                data = data.replace(
                    f"trunkline-{own}.dist-info".encode(), f"trunkline-{version}.dist-info".encode()
                )
            made.writestr(name.replace(f"trunkline-{own}.dist-info", f"trunkline-{version}.dist-info"), data)
    assert not changed
    return target


def make_dependencies(folder: Path) -> Path:
    """Make a folder for PYTHONPATH with everything that the tests have, but not Trunkline itself: what a virtual
    environment would have installed from an index.
    """
    folder.mkdir()
    for entry in SITE.iterdir():
        if not entry.name.startswith(("trunkline", "_editable", "__pycache__")) and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)
    for name in BUNDLED:
        project = ROOT / name / "src"
        for package in project.iterdir():
            if package.is_dir() and package.name.startswith("trunkline_"):
                (folder / package.name).symlink_to(package)
                info = next(SITE.glob(f"{package.name}-*.dist-info"))
                (folder / info.name).symlink_to(info)
    return folder


def install(wheel: Path, folder: Path) -> Path:
    """Install a wheel into a new virtual environment, as pip would, and return its Python."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    site = Path(sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})["purelib"])
    with zipfile.ZipFile(wheel) as source:
        source.extractall(site)
    return folder / "bin" / "python"


def install_plugin(python: Path) -> None:
    """Install a plugin of its owner beside Trunkline."""
    folder = python.parent.parent
    site = Path(sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})["purelib"])
    files = {
        "trunkline_weather/__init__.py": "",
        "trunkline_weather-1.0.dist-info/METADATA":
            "Metadata-Version: 2.1\nName: trunkline-weather\nVersion: 1.0\nRequires-Dist: trunkline>=0.1\n",
        "trunkline_weather-1.0.dist-info/entry_points.txt": "[trunkline]\nweather = trunkline_weather\n",
    }  # fmt: skip
    files["trunkline_weather-1.0.dist-info/RECORD"] = "".join(f"{name},,\n" for name in files)
    for name, text in files.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text)


def environ_of(dependencies: Path, **more: str) -> dict[str, str]:
    """Return the variables of a user whose pip reaches no index and compiles nothing."""
    kept = ("PATH", "LANG", "LC_ALL", "GOMAXPROCS", "GOGC")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PYTHONPATH": str(dependencies), "PIP_NO_INDEX": "1", "PIP_NO_COMPILE": "1", "PIP_CONFIG_FILE": os.devnull,
        "COLUMNS": "100", **more,
    }  # fmt: skip
