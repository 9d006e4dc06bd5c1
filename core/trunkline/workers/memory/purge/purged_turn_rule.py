"""The memory rule against late writes: a worker that still handles a turn of a purged conversation, such as a
learner that waits for a model, may not store what it learned there."""

from collections.abc import Iterable

from trunkline.contracts.conversations.paths import conversation_of
from trunkline.contracts.memory.store import Change
from trunkline_bus import Refusal


class PurgedTurnRule:
    """A memory rule: it refuses changes of turns that were purged; while nobody knows which, of every turn."""

    def __init__(self) -> None:
        self._turns: set[str] = set()
        self._unknown_reason = ""

    def add(self, turns: Iterable[str]) -> None:
        """Refuse what comes of these turns from now on."""
        self._turns.update(turns)

    def refuse_all(self, why: str) -> None:
        """Refuse what comes of any turn: which ones were purged is not known. ``why`` is a sentence."""
        self._unknown_reason = why

    def __call__(self, change: Change) -> Change:
        """The change, unless it comes of a purged turn. The conversation itself may begin anew."""
        if not change.scope.turn or all(map(conversation_of, change.files)):
            return change
        if self._unknown_reason:
            raise Refusal("purged", self._unknown_reason)
        if change.scope.turn in self._turns:
            raise Refusal("purged", "The conversation that this comes of was purged: nothing of it is kept.")
        return change
