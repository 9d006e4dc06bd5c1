"""``execute_command``: a program by its argument vector, or a script of the shell, in the sandbox."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from trunkline import ApprovalDetail, BlockPath, Tool, ToolContext, ToolError, preview, tool
from trunkline.api.sandbox import SandboxResult, describe_run
from trunkline.api.text import argv_from_json
from trunkline.api.tool import CanonicalCall, command_preview
from trunkline_shell.settings import ShellSettings

LONGEST_SECONDS = 120
"""Of one command; what takes longer is a background task."""

STARTUP_SECONDS = 30.0
"""Seconds that a call may take beyond its program: to create the sandbox and to remove it."""

Seconds = Annotated[int, Meta(ge=1, le=LONGEST_SECONDS)]


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """Run programs for the tools of this plugin, with the limits of the settings."""

    settings: ShellSettings

    async def run(
        self, context: ToolContext, argv: list[str], *, folder: str, seconds: float, network: bool = False
    ) -> SandboxResult:
        """Run a program in a folder of the workspace. Raises ToolError."""
        return await context.sandbox.run(
            argv,
            workspace=context.workspace,
            env=self.settings.env,
            folder=context.folder(folder),
            limits=self.settings.limits(seconds, network),
            show_output=True,
        )


def command_tool(settings: ShellSettings) -> Tool:
    """``execute_command``."""
    commands = CommandRunner(settings)

    @tool(
        effect="exec",
        argv="command",
        unbound_params=("timeout",),
        timeout=LONGEST_SECONDS + STARTUP_SECONDS,
        untrusted_output=True,
        always_send=True,
    )
    async def execute_command(
        context: ToolContext,
        command: list[str] | str,
        timeout: Seconds = LONGEST_SECONDS,
        folder: BlockPath = "",
        network: bool = False,
    ) -> str:
        """Run a program in a sandbox, where /workspace is this workspace, and return its exit code and output. Programs
        that only read, such as ls or grep, need no approval.

        Args:
            command: The program and its arguments as a list, which no shell reads; or the text of a script for sh.
            timeout: Seconds after which it is ended, with its child processes.
            folder: The folder of the workspace to start in.
            network: It needs the network, which a person must have permitted.
        """
        ran = await commands.run(
            context, command_argv(command), folder=folder, seconds=timeout, network=network
        )
        return describe_run(ran, settings.limits(timeout))

    @execute_command.alias
    def execute_bash(command: str, timeout: Seconds = 30) -> CanonicalCall:
        """Run a script of the shell.

        Args:
            command: The script.
            timeout: After how many seconds it is ended.
        """
        return CanonicalCall("execute_command", {"command": command, "timeout": timeout})

    @execute_command.previewer
    def _shown(
        context: ToolContext, command: list[str] | str, timeout: int, folder: str, network: bool
    ) -> ApprovalDetail:
        return preview_command(command, folder, network)

    return execute_command


def command_argv(command: list[str] | str) -> list[str]:
    """The argument vector: as given, or one that has ``sh`` read the script. Raises ToolError for an empty one."""
    words = argv_from_json(command) if isinstance(command, str) else command
    if words is not None:
        if not words or not words[0].strip():
            raise ToolError(
                "There is no program to run: name it, then its arguments.", kind="invalid_arguments"
            )
        return words
    if not str(command).strip():
        raise ToolError("The script is empty. Say what to run.", kind="invalid_arguments")
    return ["sh", "-c", str(command)]


def preview_command(command: list[str] | str, folder: str, network: bool) -> ApprovalDetail:
    """Return the detail that a person is shown for approval."""
    where = ", ".join(word for word in (folder, "with the network" if network else "") if word)
    if isinstance(command, str) and argv_from_json(command) is None:
        return preview("command", command + (f"\n(in {where})" if where else ""))
    return command_preview(command_argv(command), where)
