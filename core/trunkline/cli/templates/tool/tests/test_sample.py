"""The sample tool passes the contract suite and does its work."""

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
    """The contract suite."""

    def tool(self) -> Any:
        """Return the tool to test."""
        return sample_hello

    def arguments(self, workspace: Path) -> dict[str, Any]:
        """Return arguments with which the tool succeeds."""
        return {"who": "Ada"}


def test_greet_names_the_person() -> None:
    """A tool is a function, and a test may call it."""
    assert sample_hello.function(who="Ada") == "Hello, Ada!"
