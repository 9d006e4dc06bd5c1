"""One platform with a tool of every kind for all tests of this folder: it takes longer to start than they run."""

from collections.abc import AsyncIterator

import pytest

from .policy_cases import ROWS
from .tool_platform import Reached, started_platform


@pytest.fixture(scope="module")
async def reached(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Reached]:
    """The platform, with a block for each row and ``main``."""
    blocks = ["main", *(row.block for row in ROWS)]
    with pytest.MonkeyPatch.context() as site:
        async with started_platform(tmp_path_factory.mktemp("reach"), site, blocks) as running:
            yield running
