"""Builds the wheel of a project after a person has agreed. The build runs code of the project, so it runs in a
sandbox without access to a network and to the person's files.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from trunkline._util.text import one_line
from trunkline.cli.install import build_backend
from trunkline.cli.install.pip import Pip
from trunkline.cli.install.project import BUILD_YOURSELF_HINT, Project
from trunkline.contracts.sandbox.program_request import WORKSPACE, SandboxLimits
from trunkline.contracts.sandbox.sandbox import Sandbox, SandboxResult
from trunkline.errors import PluginError

LIMITS = SandboxLimits(timeout=600.0, memory=2048, cpus=2.0, processes=256)
"""The limits of a build. Compilers need more than an agent's programs."""

LEFT_OUT = shutil.ignore_patterns(".venv", "__pycache__", "node_modules", ".git", ".tox", ".nox")
"""Folders that no build reads and that may be large."""

SYSTEM = Path("/usr")
"""A folder that every sandbox shows or replaces."""

LIBRARIES = "/build/libraries"

EARLIEST = "315532800"
"""The earliest time that a wheel can store (1980), in seconds. A fixed time makes builds reproducible."""


async def build_wheel(
    pip: Pip, project: Project, folder: Path, sandbox: Sandbox, *, isolated: bool = True
) -> Path:
    """Build the wheel of a project. Code of the project runs only in the sandbox.

    Args:
        pip: fetches the requirements of the build as wheels, so that no code of them runs outside of the sandbox.
        project: the project that a person has agreed to.
        folder: an empty working folder.
        sandbox: the sandbox of the build.
        isolated: whether the build sees only the packages of its ``build-system.requires``, or the packages installed
            here.

    Raises:
        PluginError: the project cannot be built. Nothing was installed.
        ToolError: the sandbox cannot be used.
    """
    return await _Build(pip, project, folder, sandbox, isolated).wheel()


class _Build:
    """One build in a separate folder."""

    def __init__(self, pip: Pip, project: Project, folder: Path, sandbox: Sandbox, isolated: bool) -> None:
        self._pip = pip
        self._project = project
        self._sandbox = sandbox
        self._isolated = isolated
        self._libraries = folder / "libraries"
        self._workspace = folder / "workspace"
        self._wheels = self._workspace / Path(build_backend.WHEELS).relative_to(WORKSPACE)
        self._requires = self._workspace / Path(build_backend.REQUIRES).relative_to(WORKSPACE)

    async def wheel(self) -> Path:
        self._prepare()
        if self._isolated:
            self._fetch(self._project.build_requires)
            await self._run("requires")
            self._fetch(self._further())
        await self._run("wheel")
        return self._taken()

    def _prepare(self) -> None:
        self._libraries.mkdir(parents=True)
        self._wheels.mkdir(parents=True)
        place = self._workspace / Path(build_backend.PROJECT).relative_to(WORKSPACE)
        try:
            shutil.copytree(self._project.folder, place, symlinks=True, ignore=LEFT_OUT)
        except (OSError, shutil.Error) as error:
            raise PluginError(
                f"{self._project.folder} cannot be copied for the build: {one_line(str(error))[:500]}",
                hint="Check these files.",
            ) from error

    def _fetch(self, requires: tuple[str, ...]) -> None:
        """Unpack the wheels that a build requires. Only wheels are accepted, so no code of them runs here."""
        if not requires:
            return
        for text in requires:
            _require_index_only(self._project.name, text)
        done = self._pip.fetch(
            "install", "--quiet", "--target", str(self._libraries), "--only-binary", ":all:", *requires
        )
        if done.returncode:
            needs = ", ".join(requires)
            raise PluginError(
                f"The build requirements of {self._project.name} ({one_line(needs)}) are not available: "
                f"{done.stderr.strip()[-500:]}",
                hint="Check the network, or build with the packages installed here: --no-build-isolation.",
            )

    def _further(self) -> tuple[str, ...]:
        """Return the additional requirements that the build backend requested, from a file that untrusted code
        wrote.
        """
        if _is_regular(self._requires):
            with suppress(OSError, msgspec.DecodeError):
                return msgspec.json.decode(self._requires.read_bytes(), type=tuple[str, ...])
        raise self._failed("did not report its requirements")

    async def _run(self, hook: str) -> None:
        description = {
            "hook": hook,
            "backend": self._project.backend,
            "backend_path": self._project.backend_path,
            "libraries": [LIBRARIES] if self._isolated else [str(folder) for folder in _installed()],
        }
        program = "/build/build_backend.py"
        shown = _unseen([_python(), *([] if self._isolated else _installed())])
        if self._isolated:
            shown[LIBRARIES] = self._libraries
        done = await self._sandbox.run(
            (_interpreter(), "-I", "-S", "-B", program),
            workspace=self._workspace,
            env={"SOURCE_DATE_EPOCH": EARLIEST},
            read_only={program: Path(build_backend.__file__), **shown},
            stdin=msgspec.json.encode(description),
            limits=LIMITS,
            label=f"build {self._project.name}",
        )
        if done.exit_code != 0:
            raise self._failed(_why(done))

    def _taken(self) -> Path:
        """Move the built wheel out of the sandbox's folders, and return its path."""
        found = [place for place in self._wheels.iterdir() if place.suffix == ".whl" and _is_regular(place)]
        if len(found) != 1:
            raise self._failed("made no wheel")
        return Path(shutil.move(found[0], self._libraries.parent / found[0].name))

    def _failed(self, why: str) -> PluginError:
        return PluginError(
            f"The build of {self._project.name} {why}. Nothing was installed.",
            hint=f"It ran in a sandbox without a network and without your files. {BUILD_YOURSELF_HINT}",
        )


def _require_index_only(name: str, text: str) -> None:
    try:
        address = Requirement(text).url
    except InvalidRequirement:
        address = text
    if address is not None:
        raise PluginError(
            f"The build of {name} needs {one_line(text)}, which is not a package of the index.",
            hint=BUILD_YOURSELF_HINT,
        )


def _is_regular(place: Path) -> bool:
    """Report whether untrusted code created a regular file at this path. A link could lead out of the workspace."""
    return place.is_file() and not place.is_symlink()


def _interpreter() -> str:
    """Return the path of this Python's executable, with all links resolved."""
    return os.path.realpath(sys.executable)


def _python() -> Path:
    """Return the path of this Python's installation, with all links resolved."""
    return Path(os.path.realpath(sys.base_prefix))


def _installed() -> list[Path]:
    """Return the folders from which this Python imports, without its standard library."""
    own = {Path(sysconfig.get_path(key)).resolve() for key in ("stdlib", "platstdlib")}
    own |= {folder / "lib-dynload" for folder in own}
    folders = dict.fromkeys(Path(entry).resolve() for entry in sys.path if entry)
    return [folder for folder in folders if folder.is_dir() and folder not in own]


def _unseen(folders: Iterable[Path]) -> dict[str, Path]:
    """Return the folders that a sandbox does not show by default."""
    return {str(folder): folder for folder in folders if not folder.is_relative_to(SYSTEM)}


def _why(done: SandboxResult) -> str:
    if done.killed:
        return f"was ended at its limit: {done.killed}"
    said = done.stderr.decode(errors="replace").strip() or done.stdout.decode(errors="replace").strip()
    return f"failed: {said[-800:]}" if said else f"failed with exit code {done.exit_code}"
