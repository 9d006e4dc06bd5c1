"""No change makes a block's folder by mistake: a block is there when its ``block.toml`` is, and only then is anything
written into its folder.

Whoever still works for a block when it is archived or deleted, such as a learner that waits for a model, comes too
late: a folder made anew would stand where the archive is to be restored to.
"""

from trunkline.contracts.memory.store import Change
from trunkline_bus import Refusal

OWNER = "owner"


class ExistingBlockRule:
    """A memory rule: the change, unless it writes into a block that is not there.

    The owner's own commands may write into the ``default`` block before its first message has made it, so that a new
    home can be given what another system kept.
    """

    def __init__(self, default: str) -> None:
        self._default = default

    def __call__(self, change: Change) -> Change:
        """Raises Refusal."""
        by_hand = change.actor == OWNER and change.scope.conversation is None
        for block in sorted(change.homeless - ({self._default} if by_hand else set())):
            name = block[:80]
            hint = f"Make it: trunkline blocks create {name}"
            raise Refusal("not_found", f"Nothing was written: there is no block called {name!r}. {hint}")
        return change
