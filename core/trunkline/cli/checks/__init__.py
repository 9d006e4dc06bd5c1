"""The checks behind ``trunkline doctor``. They look and change nothing, and go out to the network only when asked.

``examine`` runs them; one module an area holds them.
"""

from trunkline.cli.checks.check import Finding
from trunkline.cli.checks.runner import examine

__all__ = ["Finding", "examine"]
