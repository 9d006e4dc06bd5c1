"""The tools that run programs keep the contract of tools."""

from pathlib import Path
from typing import Any

from shell_worker import needs_it

from trunkline import Sandbox, Tool, ToolContext
from trunkline.config import load_config
from trunkline.plugins import Plugins
from trunkline.testing.contexts import tool_context
from trunkline.testing.tool_suite import ToolSuite
from trunkline_shell.background_tools import background_tools
from trunkline_shell.command_tool import command_tool
from trunkline_shell.developer_tools import developer_tools
from trunkline_shell.settings import ShellSettings


def sandbox(workspace: Path) -> Sandbox:
    """Return the sandbox that a worker would choose first."""
    home = workspace.parent / "home"
    return Plugins.load(load_config(home, environ={})).sandboxes()[0].item


def named(name: str, home: Path) -> Tool:
    """A tool of the plugin."""
    settings = ShellSettings()
    made = [command_tool(settings), *developer_tools(settings), *background_tools(home, settings)]
    return next(tool for tool in made if tool.spec.name == name)


@needs_it
class TestExecuteCommand(ToolSuite):
    def tool(self) -> Tool:
        return named("execute_command", Path("/nonexistent"))

    def context(self, workspace: Path) -> ToolContext:
        return tool_context(workspace, sandbox=sandbox(workspace))

    def arguments(self, workspace: Path) -> dict[str, Any]:
        (workspace / "inner").mkdir(exist_ok=True)
        return {"command": "ls", "timeout": 20, "folder": "inner", "network": False}


TestListBackgroundTasks = ToolSuite.of(named("list_background_tasks", Path("/nonexistent")))
TestClearCompletedTasks = ToolSuite.of(named("clear_completed_tasks", Path("/nonexistent")))
