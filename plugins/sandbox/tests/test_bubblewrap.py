"""The backend bubblewrap: the contract of sandboxes, and what is its own."""

import shutil
from pathlib import Path

import pytest

from trunkline.testing.sandbox_suite import SandboxSuite
from trunkline_sandbox.bubblewrap.backend import Bubblewrap
from trunkline_sandbox.settings import SandboxSettings


class TestContract(SandboxSuite):
    """What every sandbox does."""

    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else None

    def sandbox(self, home: Path) -> Bubblewrap:
        if shutil.which("bwrap") is None:
            pytest.skip("bubblewrap is not installed (apt install bubblewrap)")
        return Bubblewrap(SandboxSettings(), home)
