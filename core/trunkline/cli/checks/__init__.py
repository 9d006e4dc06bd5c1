"""The checks behind ``trunkline doctor``. Checks change nothing, and use the network only with ``--online``."""

from trunkline.cli.checks.check import CheckReport
from trunkline.cli.checks.runner import run_checks

__all__ = ["CheckReport", "run_checks"]
