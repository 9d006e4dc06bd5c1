"""``run_lint``, ``run_build``, ``run_test``: the project's own programs, in the sandbox."""

import shutil
from pathlib import Path

import pytest
from shell_worker import needs_it, shell_worker

from trunkline._util.paths import open_beneath
from trunkline.errors import ToolError
from trunkline.testing.contexts import tool_context
from trunkline_shell.developer_tools import _split_project
from trunkline_shell.project_types import ProjectFolder, find_command

pytestmark = pytest.mark.anyio

MAKE = "build:\n\techo built > out\ntest: build\n\techo tested; exit 2\nlint:\n\t@echo clean\nX := 1\n"

PROJECTS: list[tuple[dict[str, str], dict[str, str | None]]] = [
    (
        {"package.json": '{"scripts": {"lint": "x", "test": "y"}}'},
        {"lint": "npm run lint", "build": None, "test a": "npm run test -- a"},
    ),
    ({"package.json": '{"scripts": {"build": "x"}}', "pnpm-lock.yaml": ""}, {"build": "pnpm run build"}),
    ({"package.json": "[" * 100_000}, {"lint": None, "build": None, "test": None}),
    ({"package.json": '["x"]', "Makefile": MAKE}, {"test": "make test", "test a": None, "lint a": "make lint"}),
    (
        {"pyproject.toml": "[tool.ruff]\n[tool.pytest.ini_options]\n[build-system]\nrequires = []"},
        {
            "lint": "python3 -m ruff check .", "lint a.py": "python3 -m ruff check a.py",
            "build": "python3 -m build", "test": "python3 -m pytest -q", "test a": "python3 -m pytest -q -ka",
        },
    ),
    ({"pyproject.toml": "a" + ".a" * 5_000 + "\n[ tool . ruff.lint ]"}, {"lint": "python3 -m ruff check ."}),
    ({"pyproject.toml": "# [tool.ruff]\n[tool.ruffian]\n[xtool.ruff]"}, {"lint": None}),
    ({"pyproject.toml": "not toml", "tests/x": ""}, {"test": "python3 -m pytest -q", "lint": None}),
    ({"conftest.py": "", ".venv/bin/python": ""}, {"test": ".venv/bin/python -m pytest -q"}),
    ({"setup.cfg": "[flake8]\n"}, {"lint": "python3 -m flake8 ."}),
    ({"Cargo.toml": ""}, {"lint": "cargo clippy --all-targets", "build": "cargo build", "test a": "cargo test a"}),
    ({"go.mod": ""}, {"lint": "go vet ./...", "build": "go build ./...", "test A": "go test ./... -run A"}),
    ({"Makefile": "all:\n\ncheck: all\n"}, {"build": "make all", "lint": "make check", "test": "make check"}),
    ({"README.md": "x"}, {"lint": None, "build": None, "test": None}),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), PROJECTS, ids=lambda value: str(next(iter(value)))[:20])
def test_a_project_s_own_programs(
    files: dict[str, str], expected: dict[str, str | None], tmp_path: Path
) -> None:
    """Each kind is known by its files; one that cannot pick a part is passed over when a part is wanted."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with open_beneath(tmp_path) as folder:
        project = ProjectFolder.read(folder, "")
        for request, argv in expected.items():
            verb, _, what = request.partition(" ")
            made = find_command(project, verb, what)  # type: ignore[arg-type]
            assert (None if made is None else " ".join(made)) == argv, request


def test_the_nearest_project_is_linted(tmp_path: Path) -> None:
    """A path is linted by the project that it is in."""
    (tmp_path / "a/b/src").mkdir(parents=True)
    (tmp_path / "a/b/src/x.py").write_text("")
    (tmp_path / "a/b/pyproject.toml").write_text("")
    context = tool_context(tmp_path)
    assert _split_project(context, "a/b/src/x.py") == ("a/b", "src/x.py")
    assert _split_project(context, "a/b") == ("a/b", "")
    assert _split_project(context, "") == ("", "")
    with pytest.raises(ToolError, match="no 'a/nothing'"):
        _split_project(context, "a/nothing")


@needs_it
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
async def test_developer_tools_run_in_the_sandbox_and_name_missing_files(tmp_path: Path) -> None:
    """The output and the exit status are returned; for a project without such a program the error names the missing
    files."""
    async with shell_worker(tmp_path) as worker:
        for name in ("run_lint", "run_build", "run_test"):
            said = await worker.call(name)
            assert (said.status, "Looked for: package.json" in said.output) == ("error", True)
        (worker.workspace / "p").mkdir()
        (worker.workspace / "p" / "Makefile").write_text(MAKE)
        assert "make build\nexit code 0" in (await worker.call("run_build", folder="p")).output
        assert (worker.workspace / "p/out").read_text() == "built\n"
        tested = await worker.call("run_test", folder="p")
        assert "make test\nexit code 2" in tested.output
        assert "clean" in (await worker.call("run_lint", path="p/Makefile")).output
        for filter in ("--co", "-x", "one"):
            assert (await worker.call("run_test", folder="p", filter=filter)).status == "error"


@needs_it
async def test_developer_tools_need_permission_and_approval(tmp_path: Path) -> None:
    """The rules are those of every program; the question shows the program that was found."""
    async with shell_worker(tmp_path, approvals="some") as worker:
        assert "--allow-shell" in (await worker.call("run_test")).output
    async with shell_worker(tmp_path / "other", approvals="some", allow_shell=True) as worker:
        (worker.workspace / "Makefile").write_text(MAKE)
        asked = await worker.call("run_test")
        assert (asked.status, asked.detail.text) == ("approval", "make test")
