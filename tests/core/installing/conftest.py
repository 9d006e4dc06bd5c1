"""A person's environment: a fresh virtual environment with this installation, and a separate home."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from trunkline.testing.platform import clean_environ

TOOL = '''
import trunkline

@trunkline.tool(effect="{effect}")
def {name}_look() -> str:
    """Look."""
    return "seen by {name}"

@trunkline.hookimpl
def trunkline_tools():
    return [{name}_look]
'''
READS = 'hooks = ["tools"]\neffects = ["read"]\nnetwork = ["sky.example"]\nsecrets = ["SKY_KEY"]\n'


@dataclass(frozen=True)
class Place:
    """The folder and environment in which a person types commands."""

    python: Path
    home: Path
    wheels: Path

    def trunkline(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a command with no terminal."""
        return subprocess.run(
            [str(self.python), "-m", "trunkline.cli.main", *arguments],
            env={
                **clean_environ(),
                "TRUNKLINE_HOME": str(self.home),
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # nats-server is there
                **environ,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def install(self, wanted: str | Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Install from the wheels of this test only."""
        return self.trunkline("plugins", "install", str(wanted), "--wheels", str(self.wheels), *arguments)

    def plugins(self) -> dict[str, dict[str, Any]]:
        """Return the output of ``plugins list``, by distribution."""
        report = json.loads(self.trunkline("plugins", "list", "--json").stdout)
        return {plugin["owner"]: plugin for plugin in report["plugins"]}

    def has(self, module: str) -> bool:
        """Report whether this environment has a module."""
        return bool(list(self.python.parent.parent.glob(f"lib/python*/site-packages/{module}*")))

    def wheel(self, name: str, files: Mapping[str, str], **more: Any) -> Path:
        """Put a wheel among those that can be had."""
        return make_wheel(self.wheels, name, files, **more)

    def tool(self, name: str, *, effect: str = "read", manifest: str | None = READS, **more: Any) -> Path:
        """A wheel of a tool plugin ``acme-<name>``."""
        module = f"acme_{name}"
        files = {f"{module}/__init__.py": TOOL.format(name=name, effect=effect)}
        if manifest is not None:
            files[f"{module}/trunkline-plugin.toml"] = manifest
        return self.wheel(f"acme-{name}", files | more.pop("files", {}), point=module, **more)


def make_wheel(
    folder: Path,
    name: str,
    files: Mapping[str, str],
    *,
    version: str = "1.0",
    requires: tuple[str, ...] = (),
    point: str | None = None,
    scripts: str = "",
) -> Path:
    """Write a wheel, as a build would."""
    stem = f"{name.replace('-', '_')}-{version}"
    points = f"[trunkline]\n{name.removeprefix('acme-')} = {point}\n" if point else ""
    points += f"[console_scripts]\n{scripts}\n" if scripts else ""
    reported = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {name}.\n"
    inside = {
        **files,
        f"{stem}.dist-info/METADATA": reported + "".join(f"Requires-Dist: {one}\n" for one in requires),
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{stem}.dist-info/entry_points.txt": points,
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in inside.items())
    file = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in inside.items():
            archive.writestr(path, text)
        archive.writestr(f"{stem}.dist-info/RECORD", record + f"{stem}.dist-info/RECORD,,\n")
    return file


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A new one for each test."""
    environment = tmp_path / "venv"
    venv.EnvBuilder(symlinks=True, with_pip=False).create(environment)
    (packages,) = environment.glob("lib/python*/site-packages")
    installed = Path(str(distribution("pluggy").locate_file("")))
    (packages / "installed.pth").write_text(f"import site; site.addsitedir({str(installed)!r})\n")
    (tmp_path / "the wheels").mkdir()
    return Place(environment / "bin" / "python", tmp_path / "home", tmp_path / "the wheels")


@pytest.fixture
def at_terminal(place: Place) -> Callable[..., str]:
    """Types an answer at a real terminal, and gives all that was shown."""

    def run(answer: str, *arguments: str) -> str:
        import pty

        shown = bytearray()

        def read(descriptor: int) -> bytes:
            data = os.read(descriptor, 4096)
            asked = shown.endswith((b"[y/N]: ", b"all the same: "))
            shown.extend(data)
            if shown.endswith((b"[y/N]: ", b"all the same: ")) and not asked:
                os.write(descriptor, answer.encode() + b"\n")
            return data

        os.environ["TRUNKLINE_HOME"] = str(place.home)
        try:
            pty.spawn(
                [str(place.python), "-m", "trunkline.cli.main", *arguments], read, lambda descriptor: b""
            )
        finally:
            del os.environ["TRUNKLINE_HOME"]
        return shown.decode()

    return run
