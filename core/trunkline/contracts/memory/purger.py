"""Following a purge: what keeps something of its own that came out of memory or of conversations."""

from collections.abc import Sequence

import msgspec

from trunkline.contracts.memory.purge import RemainingCopy


class Purge(msgspec.Struct, frozen=True, kw_only=True):
    """The texts that are taken out for good.

    ``paths`` are files of memory, under every name that they had. ``conversations`` are those among them, and ``turns``
    theirs. ``lines`` are lines of the text that goes, by which copies of it are recognised; ``own`` those that the
    program itself writes, by which nothing is.
    """

    target: str
    paths: frozenset[str] = frozenset()
    conversations: frozenset[str] = frozenset()
    turns: frozenset[str] = frozenset()
    lines: frozenset[bytes] = frozenset()
    own: frozenset[bytes] = frozenset()

    def merged(self, other: "Purge") -> "Purge":
        """Return what either of two purges of one target takes out."""
        return msgspec.structs.replace(
            self,
            paths=self.paths | other.paths,
            conversations=self.conversations | other.conversations,
            turns=self.turns | other.turns,
            lines=self.lines | other.lines,
            own=self.own | other.own,
        )


class Purger:
    """Takes out what a plugin made of the text that is purged. A subclass changes what it needs.

    ``texts`` are the fixed sentences that the plugin says in any conversation: they are nobody's, so what else has them
    is no copy of what is purged.
    """

    name: str = ""
    texts: Sequence[str] = ()

    def without(self, path: str, data: bytes, purge: Purge) -> bytes | None:
        """Return the rest of a file of memory that the plugin wrote; ``data`` itself when nothing of it goes, None
        when all of it does.

        Asked about every version in history that names one of ``purge.conversations``, in a thread, so it only
        computes. What is left must be left again when it is asked about that.
        """
        return data

    async def erase(self, purge: Purge) -> Sequence[RemainingCopy]:
        """Take it out of a store of the plugin's own, and say what is left there. It may come again for the same purge.

        Raise Refusal to stop the purge before memory is touched.
        """
        return ()
