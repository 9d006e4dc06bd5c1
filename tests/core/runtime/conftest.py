"""Shared by the tests of the runtime."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from workers_for_tests import Crew


@pytest.fixture
def crew() -> Crew:
    return Crew()
