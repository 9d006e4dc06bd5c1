"""What all tests of this plugin need: a machine on which a process can be shut in."""

import sys
from pathlib import Path

import anyio
import pytest

from trunkline_rlm.repl.process import CannotConfine, Limits, begun

sys.path.insert(0, str(Path(__file__).parent))  # rlm_shelf


@pytest.fixture(autouse=True, scope="session")
def confinable() -> None:
    """Skip where no code can be run: the platform refuses there, and says so."""
    try:
        anyio.run(_probed)
    except CannotConfine as error:
        pytest.skip(str(error))


async def _probed() -> None:
    await (await begun((), Limits())).end()
