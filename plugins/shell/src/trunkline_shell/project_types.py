"""Finds the program that checks, builds or tests a project, from the files in its folder. Starts nothing."""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from trunkline import Folder

Verb = Literal["lint", "build", "test"]
LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class ProjectFolder:
    """A folder as the table sees it: which names are in it, and what its files hold."""

    files: Folder
    folder: str
    names: frozenset[str]

    @classmethod
    def read(cls, files: Folder, folder: str) -> "ProjectFolder":
        """The project in a folder. Raises OSError."""
        names = frozenset(entry.path.rpartition("/")[2] for entry in files.listdir(folder))
        return cls(files, folder, names)

    def text(self, name: str) -> str:
        """Return the content of a file; empty when it does not exist or cannot be read."""
        path = f"{self.folder}/{name}" if self.folder else name
        with suppress(OSError):
            return self.files.read_bytes(path, limit=LARGEST).decode(errors="replace")
        return ""

    def has_table(self, *keys: str) -> bool:
        """Report whether ``pyproject.toml`` has a table of this name, or one within it, by its heading.

        The file is a stranger's, and looked at before anybody is asked: a parser of TOML takes memory by the square of
        how long a key is.
        """
        heading = r"[ \t]*\.[ \t]*".join(map(re.escape, keys))
        text = self.text("pyproject.toml")
        return re.search(rf"^[ \t]*\[[ \t]*{heading}[ \t]*[].]", text, re.MULTILINE) is not None

    @property
    def python(self) -> str:
        """The interpreter: that of the project's own environment where it has one."""
        return ".venv/bin/python" if ".venv" in self.names else "python3"


CommandFactory = Callable[[ProjectFolder, str], Sequence[str] | None]
"""From a project, and what is to be checked or tested of it (nothing: all), to a program; None: it has none."""


@dataclass(frozen=True, slots=True)
class ProjectType:
    """A kind of project: the names that it is known by, and its programs."""

    name: str
    known_by: tuple[str, ...]
    lint: CommandFactory
    build: CommandFactory
    test: CommandFactory
    picks: bool = True

    def matches(self, project: ProjectFolder) -> bool:
        """Report whether the project is of this kind."""
        return not project.names.isdisjoint(self.known_by)


def find_command(project: ProjectFolder, verb: Verb, what: str) -> Sequence[str] | None:
    """Return the program; None when no project type has one. Types that cannot select a part are skipped when a part is
    wanted; a whole project is linted when none can."""
    for kind in PROJECT_TYPES:
        if kind.matches(project) and (kind.picks or not what):
            made: CommandFactory = getattr(kind, verb)
            if (argv := made(project, what)) is not None:
                return argv
    return find_command(project, verb, "") if verb == "lint" and what else None


def _package_script(name: str) -> CommandFactory:
    def made(project: ProjectFolder, what: str) -> Sequence[str] | None:
        try:
            scripts = json.loads(project.text("package.json")).get("scripts", {})
        except (ValueError, AttributeError, RecursionError):
            return None
        if not isinstance(scripts, dict) or name not in scripts:
            return None
        managers = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
        manager = next((manager for lock, manager in managers.items() if lock in project.names), "npm")
        return [manager, "run", name, *(["--", what] if what else [])]

    return made


def _make_target(*names: str) -> CommandFactory:
    def made(project: ProjectFolder, what: str) -> Sequence[str] | None:
        file = next((one for one in ("GNUmakefile", "makefile", "Makefile") if one in project.names), "")
        targets = set(re.findall(r"^([A-Za-z0-9_-]+)[ \t]*:(?!=)", project.text(file), re.MULTILINE))
        return next((["make", name] for name in names if name in targets), None)

    return made


def _python_lint(project: ProjectFolder, what: str) -> Sequence[str] | None:
    if project.has_table("tool", "ruff") or not project.names.isdisjoint(("ruff.toml", ".ruff.toml")):
        return [project.python, "-m", "ruff", "check", what or "."]
    if ".flake8" in project.names or "[flake8]" in project.text("setup.cfg"):
        return [project.python, "-m", "flake8", what or "."]
    return None


def _python_build(project: ProjectFolder, what: str) -> Sequence[str] | None:
    return [project.python, "-m", "build"] if project.has_table("build-system") else None


def _python_test(project: ProjectFolder, what: str) -> Sequence[str] | None:
    configured = project.has_table("tool", "pytest") or "[tool:pytest]" in project.text("setup.cfg")
    if configured or not project.names.isdisjoint(("pytest.ini", "conftest.py", "tests", "test")):
        return [project.python, "-m", "pytest", "-q", *([f"-k{what}"] if what else [])]
    return None


def _fixed(*argv: str, picks: str = "") -> CommandFactory:
    """A fixed program; ``picks`` is what stands before the part that is wanted."""

    def made(project: ProjectFolder, what: str) -> Sequence[str] | None:
        return [*argv, *([word for word in (picks, what) if word] if what else [])]

    return made


PYTHON = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "ruff.toml",
    ".ruff.toml",
    "pytest.ini",
    "tox.ini",
    "conftest.py",
)

PROJECT_TYPES = (
    ProjectType(
        "package.json (scripts)",
        ("package.json",),
        _package_script("lint"),
        _package_script("build"),
        _package_script("test"),
    ),
    ProjectType(
        "pyproject.toml (ruff, flake8, build, pytest)", PYTHON, _python_lint, _python_build, _python_test
    ),
    ProjectType(
        "Cargo.toml",
        ("Cargo.toml",),
        lambda project, what: ["cargo", "clippy", "--all-targets"],
        _fixed("cargo", "build"),
        _fixed("cargo", "test"),
    ),
    ProjectType(
        "go.mod",
        ("go.mod",),
        lambda project, what: ["go", "vet", "./..."],
        _fixed("go", "build", "./..."),
        _fixed("go", "test", "./...", picks="-run"),
    ),
    ProjectType(
        "Makefile (targets lint or check, build or all, test or check)",
        ("GNUmakefile", "makefile", "Makefile"),
        _make_target("lint", "check"),
        _make_target("build", "all"),
        _make_target("test", "check"),
        picks=False,
    ),
)
"""The kinds that are known, those first whose programs can pick a part."""
