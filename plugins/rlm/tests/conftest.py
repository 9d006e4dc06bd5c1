"""Shared by the tests of this plugin: a sandbox to run code in, and functions that inspect its processes."""

import shutil
import sys
from pathlib import Path

import anyio
import pytest

from trunkline import Sandbox
from trunkline_sandbox.bubblewrap.backend import Bubblewrap
from trunkline_sandbox.settings import SandboxSettings

sys.path.insert(0, str(Path(__file__).parent))  # rlm_chunks, rlm_processes


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """Bubblewrap. Skips where it does not work: the platform refuses code there, and says what to install."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed (apt install bubblewrap)")
    made = Bubblewrap(SandboxSettings(), tmp_path_factory.mktemp("home"))
    if (reason := anyio.run(made.unavailable)) is not None:
        pytest.skip(reason)
    return made
