"""Finds a pip that can install into this environment, and runs it. Decides nothing about what is installed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from trunkline.errors import PluginError

PIP_SECONDS = 900.0
"""Seconds that one run of pip may take. The download of a large wheel may be slow."""


@dataclass(frozen=True, slots=True)
class Pip:
    """A pip for this Python. ``options`` are added to every command that looks for packages. With ``wheels``, pip
    finds packages only in that folder.
    """

    command: tuple[str, ...]
    options: tuple[str, ...] = ()
    wheels: Path | None = None

    def fetch(self, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a pip command that looks for packages. A failure is returned, not raised."""
        return self.run(verb, *self.options, *arguments)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run pip without standard input. A failure is returned, not raised. Raises PluginError after ``PIP_SECONDS``
        seconds.
        """
        environ = {
            **os.environ,
            **self._only_wheels(),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
        }
        try:
            return subprocess.run(
                [*self.command, *arguments],
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PIP_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise PluginError(
                f"pip {arguments[0]} did not finish within {PIP_SECONDS:.0f} s.",
                hint="Check the network, and try again.",
            ) from None

    def _only_wheels(self) -> Mapping[str, str]:
        if self.wheels is None:
            return {}
        # As a URL, because pip splits a path at a blank.
        return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": self.wheels.resolve().as_uri()}


def find_pip(*options: str, wheels: Path | None = None, python: str = sys.executable) -> Pip:
    """Return a working pip: that of this environment, that of its base Python, one on the PATH, or uv's. It installs
    into the environment of ``python``.

    Raises:
        PluginError: there is none.
    """
    if _has_pip():
        other = () if python == sys.executable else ("--python", python)
        return Pip((sys.executable, "-m", "pip", *other), options, wheels)
    for command in _others(python):
        pip = Pip(command, options, wheels)
        try:
            if pip.run("--version").returncode == 0:
                return pip
        except OSError:
            continue
    raise PluginError(
        "Installing needs pip or uv, and neither is available.",
        hint="Install one (Debian: sudo apt install python3-pip), or recreate the environment with pip.",
    )


def _has_pip() -> bool:
    try:
        return find_spec("pip.__main__") is not None
    except ImportError:
        return False


def _others(python: str) -> Iterator[tuple[str, ...]]:
    here = ("--python", python)
    base = getattr(sys, "_base_executable", sys.executable)
    if base != sys.executable:
        yield (base, "-m", "pip", *here)
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            yield (found, *here)
    if uv := shutil.which("uv"):
        yield (uv, "tool", "run", "pip", *here)
