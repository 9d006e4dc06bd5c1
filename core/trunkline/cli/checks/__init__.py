"""The checks behind ``trunkline doctor``. Checks change nothing. Only ``--online`` reaches hosts besides the bus."""

from trunkline.cli.checks.check import CheckReport
from trunkline.cli.checks.runner import run_checks

__all__ = ["CheckReport", "run_checks"]
