"""Lets the tests import ``git_workspaces``."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
