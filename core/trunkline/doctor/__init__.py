"""The checks behind ``trunkline doctor``. They look and change nothing, and go out to the network only when asked.

``examine`` runs them; one module an area holds them.
"""

from trunkline.doctor.examine import examine
from trunkline.doctor.finding import Finding

__all__ = ["Finding", "examine"]
