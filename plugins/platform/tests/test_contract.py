"""Each tool of the platform keeps the contract of tools."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import trunkline
from trunkline.errors import NoAnswer, ToolError
from trunkline.testing.contexts import tool_context
from trunkline.testing.tool_suite import ToolSuite
from trunkline_platform import info_tools, person_tools

TestCurrentTime = ToolSuite.of(info_tools.get_current_time, timezone="UTC")
TestSystemInfo = ToolSuite.of(info_tools.system_info)


class Owner(trunkline.Person):
    """Answers with the last proposal."""

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        return options[-1]

    async def tell(self, channel: str, text: str) -> None:
        return None


@pytest.mark.anyio
async def test_an_answer_is_the_result_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    """The owner's answer is returned unchanged; without a person to ask, the tool reports it."""
    arguments = {"question": "Which?", "options": ["a", "b"]}
    context = tool_context(tmp_path, person=Owner())
    assert await person_tools.ask_human(context, arguments) == "The owner answered: b"
    with pytest.raises(NoAnswer, match="No person can be asked"):
        await person_tools.ask_human(tool_context(tmp_path), arguments)


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["Mars/Olympus", "../../etc/passwd", "Europe", "x" * 500, "a\0b"])
async def test_an_invalid_time_zone_is_refused(tmp_path: Path, name: str) -> None:
    """With a name that would do; no file outside of the database is read for it."""
    with pytest.raises(ToolError, match="Use a name such as"):
        await info_tools.get_current_time(tool_context(tmp_path), {"timezone": name})
