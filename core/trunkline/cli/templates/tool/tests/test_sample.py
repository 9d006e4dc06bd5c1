"""The sample tool does what every tool must, and what it is for."""

from pathlib import Path
from typing import Any

import pytest
from trunkline.api.testing import ToolSuite

from trunkline_sample import sample_hello


@pytest.fixture
def anyio_backend() -> str:
    """Trunkline runs on asyncio."""
    return "asyncio"


class TestSample(ToolSuite):
    """The contract."""

    def tool(self) -> Any:
        """The tool to try."""
        return sample_hello

    def arguments(self, workspace: Path) -> dict[str, Any]:
        """Arguments with which it does its work."""
        return {"who": "Ada"}


def test_it_greets_whom_it_is_reported() -> None:
    """A tool is a function, and a test may call it."""
    assert sample_hello.function(who="Ada") == "Hello, Ada!"
