"""``tool.json``: a program that is a tool. It runs only in a sandbox.

::

    {"name": "word_count", "description": "Counts words.", "command": ["wc", "-w"],
     "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}

The program receives the arguments as a JSON object on standard input. Its standard output is the result. With an exit
code other than 0 the call fails, and its standard error is the text of the error. The default of ``effect`` is
``exec``.
"""

from pathlib import Path
from typing import Any

import msgspec

from trunkline._util.json_file import read_json
from trunkline._util.regular_file import read_regular
from trunkline._util.toml import SettingsFileError
from trunkline.contracts.sandbox.program_request import SandboxLimits
from trunkline.contracts.sandbox.sandbox import SandboxResult
from trunkline.contracts.tools.messages import Category, Effect, ToolSpec
from trunkline.contracts.tools.tool import Tool, ToolContext
from trunkline.errors import PluginError, ToolError

CLI_SOURCE = "cli:"
"""The prefix of the source of a tool that is a program. Such a tool needs a sandbox whatever its effect."""

_PATH_WORDS = frozenset({"path", "file", "filepath", "directory", "dir", "target", "source", "destination"})


class ToolManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file. ``paths`` names the parameters that are paths of the workspace. By default, these are
    the parameters with names like ``path`` or ``file``.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    command: tuple[str, ...]
    effect: Effect = "exec"
    idempotent: bool = False
    timeout: float = 60.0
    paths: tuple[str, ...] | None = None
    category: Category = "discoverable"


class ManifestTool(Tool):
    """A tool whose program runs in the sandbox."""

    def __init__(self, spec: ToolSpec, command: tuple[str, ...]) -> None:
        self.spec = spec
        self._command = command

    async def __call__(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """Run the program. Raises ToolError when there is no sandbox, or the program fails or is stopped."""
        result = await context.sandbox.run(
            self._command,
            workspace=context.workspace,
            env={},
            stdin=msgspec.json.encode(arguments),
            limits=SandboxLimits(timeout=self.spec.timeout),
            show_output=True,
        )
        return _output(self.spec.name, result)


def load_manifest_tool(file: Path) -> ManifestTool:
    """Return the tool of a ``tool.json``.

    Raises:
        PluginError: the file is not a valid manifest; the sentence states the problem.
    """
    try:
        manifest = read_json(str(file), read_regular(file), ToolManifest)
    except (OSError, SettingsFileError) as error:
        raise PluginError(f"{file} is not a tool manifest: {error}") from error
    if not manifest.command:
        raise PluginError(f"{file}: the command is empty; it names the program and its arguments")
    return ManifestTool(_spec(manifest), manifest.command)


def _spec(manifest: ToolManifest) -> ToolSpec:
    names = manifest.parameters.get("properties", {})
    paths = manifest.paths
    if paths is None:
        paths = tuple(name for name in names if name.lower().rpartition("_")[2] in _PATH_WORDS)
    return ToolSpec(
        name=manifest.name,
        description=manifest.description,
        parameters=manifest.parameters,
        effect=manifest.effect,
        idempotent=manifest.idempotent,
        timeout=manifest.timeout,
        paths=paths,
        untrusted_output=True,
        source=f"{CLI_SOURCE}{manifest.name}",
        category=manifest.category,
    )


def _output(name: str, result: SandboxResult) -> str:
    if result.exit_code != 0:
        why = (
            f"was stopped ({result.killed})"
            if result.killed
            else f"ended with the exit code {result.exit_code}"
        )
        stderr = result.stderr.decode(errors="replace").strip()[-2000:]
        raise ToolError(f"{name} {why}.{f' Its error output: {stderr}' if stderr else ''}", kind="failed")
    return result.stdout.decode(errors="replace")
