"""Lets the tests here import ``file_calls``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
