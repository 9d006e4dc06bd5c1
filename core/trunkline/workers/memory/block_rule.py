"""No change makes a block's folder by mistake: a block is there when its ``block.toml`` is, and only then is anything
written into its folder.

Whoever still works for a block when it is archived or deleted, such as a learner that waits for a model, comes too
late: a folder made anew would stand where the archive is to be restored to.
"""

from collections.abc import Iterator, Mapping

from trunkline.contracts.memory.store import Change
from trunkline.workers.memory.view import View
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


def missing_blocks(files: Mapping[str, bytes | None], view: View) -> frozenset[str]:
    """The blocks that a change of these files writes into and that are not there once it is made."""
    return frozenset(
        home.split("/")[1]
        for home in block_files(files)
        if (files[home] is None if home in files else view.entry(home) is None)
    )


def block_files(files: Mapping[str, object | None]) -> Iterator[str]:
    """The ``block.toml`` of each block that files are written into; those that are None are taken out."""
    written = (path.split("/") for path, content in files.items() if content is not None)
    yield from {
        f"blocks/{parts[1]}/block.toml" for parts in written if parts[0] == "blocks" and len(parts) > 2
    }
