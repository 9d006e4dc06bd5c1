"""The budget of one retrieval for model calls at every depth, and its use. Whole micro-USD."""

from collections import Counter
from dataclasses import dataclass, field

from trunkline.api.model import Completion


class BudgetExhaustedError(Exception):
    """There is nothing left; no model was asked."""


@dataclass(slots=True)
class Budget:
    """``max_cost`` is in millionths of a US dollar, ``max_calls`` counts calls of models."""

    max_cost: int
    max_calls: int
    cost: int = 0
    calls: int = 0
    by_model: Counter[str] = field(default_factory=Counter)
    """The cost of each ``adapter/model``."""

    @property
    def remaining(self) -> int:
        """Micro-USD."""
        return max(0, self.max_cost - self.cost)

    def reserve_call(self) -> int:
        """Reserve the most that the next call may cost, and return it.

        Raises:
            BudgetExhaustedError: the budget has no room for a call.
        """
        if self.calls >= self.max_calls:
            raise BudgetExhaustedError(f"All {self.max_calls} model calls of this retrieval are used up.")
        if self.cost and not self.remaining:
            raise BudgetExhaustedError(f"The {self.max_cost / 1e6:g} USD of this retrieval are used up.")
        self.calls += 1
        return self.remaining

    def settle(self, done: Completion) -> None:
        """Count what a call has cost."""
        self.cost += done.cost
        self.by_model[f"{done.adapter}/{done.model}"] += done.cost
