"""Calling a file tool by itself, as the tests here do."""

import inspect
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from trunkline import ToolError
from trunkline.api.tool import FunctionTool
from trunkline.testing.contexts import tool_context


def run(tool: FunctionTool, workspace: Path, *arguments: Any, given: Any = None, **named: Any) -> str:
    """The tool's function, called as the decorator would call it; ``given`` is a context of one's own."""
    found = tool.function(given or tool_context(workspace), *arguments, **named)
    if inspect.iscoroutine(found):
        found = anyio.run(partial(_awaited, found))
    assert isinstance(found, str)
    return found


async def _awaited(found: Any) -> Any:
    return await found


def refusal(tool: FunctionTool, workspace: Path, *arguments: Any, **named: Any) -> str:
    """The text with which the tool refuses."""
    with pytest.raises(ToolError) as caught:
        run(tool, workspace, *arguments, **named)
    return str(caught.value)


def shown(tool: FunctionTool, workspace: Path, **arguments: Any) -> str:
    """Return the preview for a person who decides about this call."""
    detail = anyio.run(tool.preview, tool_context(workspace), arguments)
    assert detail is not None
    return str(detail.text)
