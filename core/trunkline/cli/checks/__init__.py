"""The checks behind ``trunkline doctor``. They look and change nothing, and go out to the network only when asked.

``examine`` runs them; one module an area holds them.
"""

from trunkline.cli.checks.check import CheckReport
from trunkline.cli.checks.runner import run_checks

__all__ = ["CheckReport", "run_checks"]
