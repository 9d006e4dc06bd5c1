"""Shared by the tests of the runtime."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from workers_for_tests import RecordedWorkers


@pytest.fixture
def recorded_workers() -> RecordedWorkers:
    return RecordedWorkers()
