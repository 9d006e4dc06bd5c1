"""The contract of a tool, as a test suite for any tool.

::

    from trunkline.api.testing import ToolSuite

    class TestRoll(ToolSuite):
        def tool(self):
            return roll

        def arguments(self, workspace):
            return {"sides": 6}

``TestRoll = ToolSuite.of(roll, sides=6)`` is equivalent, for arguments that need no files in the workspace.

The suite calls the tool directly, in a temporary workspace, in the way of the tools worker.
"""

import json
import math
from abc import ABC, abstractmethod
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import anyio
import pytest

from trunkline.contracts.tools.tool import Tool, ToolContext
from trunkline.errors import ToolError
from trunkline.testing.contexts import tool_context
from trunkline.testing.contract_suite import ContractSuite
from trunkline.workers.tools.arguments import prepare_arguments
from trunkline.workers.tools.spec_validation import spec_problems

HOSTILE_PATHS = (
    "/etc/passwd", "../outside.txt", "a/../../outside.txt", "~/outside.txt", "~root/x", ".env", "x/id_rsa",
    ".ssh/config", ".aws/credentials", "auth.json", "link.txt", "linked/outside.txt", "nul\0.txt", "x" * 5000,
)  # fmt: skip
"""Paths that every tool must refuse (MB-T6, MB-T7). The suite creates the links and their targets."""

PATH_WORDS = frozenset({"path", "file", "filepath", "filename", "directory", "dir", "folder"})
SECRET = "outside the workspace"


class ToolSuite(ContractSuite, ABC):
    """Inherit from this class and implement ``tool`` and ``arguments``; pytest runs the tests.

    ``other_paths`` names parameters that have the name of a path but contain no path of the workspace, such as a path
    in memory or a URL. ``memory`` is the memory that the tool receives.
    """

    other_paths: tuple[str, ...] = ()

    @abstractmethod
    def tool(self) -> Tool:
        """Return the tool."""

    @abstractmethod
    def arguments(self, workspace: Path) -> dict[str, Any]:
        """Return arguments with which the tool succeeds. Create the files that it needs in the workspace."""

    @classmethod
    def of(cls, tool: Tool, **arguments: Any) -> "type[ToolSuite]":
        """Return the suite of a tool for these arguments. pytest runs it under a name that begins with ``Test``."""
        members = {"tool": lambda self: tool, "arguments": lambda self, workspace: dict(arguments)}
        return type(cls.__name__, (cls,), members)

    def context(self, workspace: Path) -> ToolContext:
        """Return the tool's context. Override this method to provide a memory."""
        return tool_context(workspace)

    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Path:
        """Return an empty workspace with links that lead out of it, and their targets outside."""
        inside = tmp_path / "workspace"
        inside.mkdir()
        (tmp_path / "outside.txt").write_text(SECRET)
        (inside / "link.txt").symlink_to(tmp_path / "outside.txt")
        (inside / "linked").symlink_to(tmp_path)
        return inside

    def test_the_definition_can_be_used(self) -> None:
        """Name, description, effect, timeout and schema are valid for the catalogue."""
        assert spec_problems(self.tool().spec) == []

    def test_every_parameter_is_described_by_a_type(self) -> None:
        """The schema gives each parameter a type."""
        properties = self.tool().spec.parameters.get("properties", {})
        assert [name for name, part in properties.items() if not part] == []

    def test_paths_are_declared(self) -> None:
        """Every parameter with the name of a path is among the spec's ``paths``, so that the path stage checks it."""
        spec = self.tool().spec
        called = {name for name in spec.parameters.get("properties", {}) if _last_word(name) in PATH_WORDS}
        assert called - set(spec.paths) - set(self.other_paths) == set()

    @pytest.mark.anyio
    async def test_good_arguments_give_text(self, workspace: Path) -> None:
        """The result is text that a message can contain."""
        assert isinstance(await self._called(workspace, self.arguments(workspace)), str)

    @pytest.mark.anyio
    async def test_arguments_sent_as_text_are_accepted(self, workspace: Path) -> None:
        """Numbers and booleans sent as text, and all arguments as JSON text, have the same meaning."""
        good = self.arguments(workspace)
        loose = {name: value if isinstance(value, str) else json.dumps(value) for name, value in good.items()}
        spec = self.tool().spec
        assert prepare_arguments(spec, loose) == prepare_arguments(spec, good)
        assert prepare_arguments(spec, {"": json.dumps(good)}) == prepare_arguments(spec, good)

    @pytest.mark.anyio
    async def test_missing_arguments_are_refused_with_their_name(self, workspace: Path) -> None:
        """The refusal names each missing required parameter."""
        for name in self.tool().spec.parameters.get("required", ()):
            given = {one: value for one, value in self.arguments(workspace).items() if one != name}
            with pytest.raises(ToolError, match=name):
                await self._called(workspace, given)

    @pytest.mark.anyio
    async def test_wrong_arguments_are_a_tool_error(self, workspace: Path) -> None:
        """A value of a wrong type is refused with the parameter's name, and never crashes the tool."""
        spec = self.tool().spec
        for name, part in spec.parameters.get("properties", {}).items():
            if "type" not in part or part["type"] == "object":
                continue
            with pytest.raises(ToolError, match=name):
                await self._called(workspace, {**self.arguments(workspace), name: {"no": ["such", "thing"]}})

    @pytest.mark.anyio
    async def test_unknown_arguments_are_a_tool_error(self, workspace: Path) -> None:
        """An unknown parameter is refused, unless the schema permits more."""
        spec = self.tool().spec
        if spec.parameters.get("additionalProperties", "properties" not in spec.parameters):
            pytest.skip("the schema allows further parameters")
        with pytest.raises(ToolError, match="no_such_parameter"):
            await self._called(workspace, {**self.arguments(workspace), "no_such_parameter": 1})

    @pytest.mark.anyio
    async def test_hostile_paths_are_refused_by_the_tool_itself(self, workspace: Path) -> None:
        """The tool is safe without the path stage: it opens files only beneath the workspace, and reads and changes
        nothing outside.
        """
        spec = self.tool().spec
        if not spec.paths:
            pytest.skip("the tool takes no path")
        for name, path in product(spec.paths, HOSTILE_PATHS):
            given = {**self.arguments(workspace), name: path}
            before = _picture(workspace.parent)
            with pytest.raises(ToolError):
                await self.tool()(self.context(workspace), given)
                pytest.fail(f"{name}={path[:80]!r} was not refused")
            assert _picture(workspace.parent) == before, f"{name}={path[:80]!r} changed something"

    @pytest.mark.anyio
    async def test_a_read_changes_nothing(self, workspace: Path) -> None:
        """A tool with the effect ``read`` does not change the workspace, so running it again is harmless."""
        if self.tool().spec.effect != "read":
            pytest.skip("the tool is not a read")
        given = self.arguments(workspace)
        before = _picture(workspace)
        await self._called(workspace, given)
        await self._called(workspace, given)
        assert _picture(workspace) == before

    @pytest.mark.anyio
    async def test_a_cancel_is_obeyed_without_side_effects(self, workspace: Path) -> None:
        """A cancelled call ends soon without another error, and the next call works."""
        given = self.arguments(workspace)
        with anyio.fail_after(60), anyio.move_on_after(-math.inf):
            await self.tool()(self.context(workspace), dict(given))
        await self._called(workspace, self.arguments(workspace))

    @pytest.mark.anyio
    async def test_reads_may_run_at_the_same_time(self, workspace: Path) -> None:
        """Concurrent calls of a reading tool do not affect each other."""
        if self.tool().spec.effect != "read":
            pytest.skip("the tool is not a read")
        given = self.arguments(workspace)
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(partial(self._called, workspace, given))

    async def _called(self, workspace: Path, arguments: dict[str, Any]) -> str:
        tool = self.tool()
        output = await tool(self.context(workspace), prepare_arguments(tool.spec, arguments))
        assert output.encode() is not None
        return output


def _last_word(name: str) -> str:
    return name.lower().rpartition("_")[2]


def _picture(folder: Path) -> dict[str, str]:
    """Return a snapshot of everything below a folder: links by target, files by content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = path.read_bytes().hex() if path.is_file() else "folder"
    return found
