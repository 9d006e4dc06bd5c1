"""``run_lint``, ``run_build``, ``run_test``: the project's own programs, found by the files that it has."""

from collections.abc import Sequence

from trunkline import ApprovalDetail, BlockPath, Tool, ToolContext, ToolError, tool
from trunkline.api.sandbox import describe_run
from trunkline.api.tool import command_preview
from trunkline_shell.command_tool import STARTUP_SECONDS, CommandRunner
from trunkline_shell.project_types import PROJECT_TYPES, ProjectFolder, Verb, find_command
from trunkline_shell.settings import ShellSettings

LONGEST_SECONDS = 600.0
"""Of a check, a build or the tests; what takes longer is a background task."""


def developer_tools(settings: ShellSettings) -> list[Tool]:
    """The three tools."""
    commands = CommandRunner(settings)

    async def run(context: ToolContext, verb: Verb, folder: str, what: str) -> str:
        argv, place = _find_program(context, verb, folder, what)
        ran = await commands.run(context, [*argv], folder=place, seconds=LONGEST_SECONDS)
        return f"{' '.join(argv)}\n{describe_run(ran, settings.limits(LONGEST_SECONDS))}"

    @tool(effect="exec", timeout=LONGEST_SECONDS + STARTUP_SECONDS, untrusted_output=True)
    async def run_lint(context: ToolContext, path: BlockPath = "") -> str:
        """Check a project of the workspace with its own linter, such as ruff or the script lint of package.json.

        Args:
            path: The file or folder to check, relative to the workspace; empty for all of it.
        """
        return await run(context, "lint", *_split_project(context, path))

    @run_lint.previewer
    def _lint(context: ToolContext, path: str) -> ApprovalDetail:
        return _preview(context, "lint", *_split_project(context, path))

    @tool(effect="exec", timeout=LONGEST_SECONDS + STARTUP_SECONDS, untrusted_output=True)
    async def run_build(context: ToolContext, folder: BlockPath = "") -> str:
        """Build a project of the workspace with its own build system, such as its Makefile or Cargo.toml.

        Args:
            folder: The project, relative to the workspace; empty for the workspace itself.
        """
        return await run(context, "build", folder, "")

    @run_build.previewer
    def _build(context: ToolContext, folder: str) -> ApprovalDetail:
        return _preview(context, "build", folder, "")

    @tool(effect="exec", timeout=LONGEST_SECONDS + STARTUP_SECONDS, untrusted_output=True)
    async def run_test(context: ToolContext, filter: str = "", folder: BlockPath = "") -> str:
        """Run the tests of a project of the workspace with its own test runner, such as pytest or go test.

        Args:
            filter: Only tests whose names fit this; empty for all.
            folder: The project, relative to the workspace; empty for the workspace itself.
        """
        return await run(context, "test", folder, filter)

    @run_test.previewer
    def _test(context: ToolContext, filter: str, folder: str) -> ApprovalDetail:
        return _preview(context, "test", folder, filter)

    return [run_lint, run_build, run_test]


def _preview(context: ToolContext, verb: Verb, folder: str, what: str) -> ApprovalDetail:
    argv, place = _find_program(context, verb, folder, what)
    return command_preview([*argv], place)


def _find_program(context: ToolContext, verb: Verb, folder: str, what: str) -> tuple[Sequence[str], str]:
    """The program, and the folder it runs in. Raises ToolError that says what was looked for."""
    if what.startswith("-"):
        raise ToolError(
            f"{what!r} begins with a dash, so a program would take it for an option.",
            kind="invalid_arguments",
        )
    with context.files() as files:
        argv = find_command(ProjectFolder.read(files, context.folder(folder)), verb, what)
    if argv is None:
        only = f" for only {what!r}" if what else ""
        looked = "; ".join(kind.name for kind in PROJECT_TYPES)
        raise ToolError(
            f"There is nothing to {verb} {folder or 'the workspace'} with{only}. Looked for: {looked}. "
            f"Name the folder of the project, or run its program with execute_command.",
            kind="not_found",
        )
    return argv, folder


def _split_project(context: ToolContext, path: str) -> tuple[str, str]:
    """The project that a path is in, and the path within it: the nearest folder above with a file that is known."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    known = frozenset(name for kind in PROJECT_TYPES for name in kind.known_by)
    with context.files() as files:
        if names and not files.exists(path):
            raise ToolError(f"There is no {path!r} in the workspace.", kind="not_found")
        for depth in range(len(names), -1, -1):
            folder = "/".join(names[:depth])
            if files.stat(folder).kind == "folder" and not known.isdisjoint(
                ProjectFolder.read(files, folder).names
            ):
                return folder, "/".join(names[depth:])
    return "", "/".join(names)
