"""Purger: the part of a purge that concerns data which a plugin derived from memory or conversations."""

from collections.abc import Sequence

import msgspec

from trunkline.contracts.memory.purge import RemainingCopy


class Purge(msgspec.Struct, frozen=True, kw_only=True):
    """The texts that a purge removes.

    ``paths`` are files of memory, under every name that they ever had. ``conversations`` are the conversations among
    them, and ``turns`` the turns of these conversations. ``lines`` are lines of the purged text; a copy is recognised
    by these lines. ``own`` are lines that the program itself writes; no copy is recognised by them.
    """

    target: str
    paths: frozenset[str] = frozenset()
    conversations: frozenset[str] = frozenset()
    turns: frozenset[str] = frozenset()
    lines: frozenset[bytes] = frozenset()
    own: frozenset[bytes] = frozenset()

    def merged(self, other: "Purge") -> "Purge":
        """Return a purge that removes what either of two purges of the same target removes."""
        return msgspec.structs.replace(
            self,
            paths=self.paths | other.paths,
            conversations=self.conversations | other.conversations,
            turns=self.turns | other.turns,
            lines=self.lines | other.lines,
            own=self.own | other.own,
        )


class Purger:
    """Removes data that a plugin derived from purged text. A subclass overrides the methods that it needs.

    ``texts`` are fixed sentences that the plugin writes in any conversation. Data that has only these sentences is no
    copy of purged text.

    Guarantees: one purge runs at a time.

    Not guaranteed: that a method is called once for a purge, because a purge that was interrupted is repeated.
    """

    name: str = ""
    texts: Sequence[str] = ()

    def without(self, path: str, data: bytes, purge: Purge) -> bytes | None:
        """Return what remains of a file of memory that the plugin wrote: ``data`` itself if nothing is purged, None if
        the whole file is.

        Called for every version in history that names one of ``purge.conversations``. The method runs in a thread and
        must only compute. Called with its own result, the method must return that result unchanged.

        Raises:
            Exception: the purge fails and is incomplete. The owner repeats it.
        """
        return data

    async def erase(self, purge: Purge) -> Sequence[RemainingCopy]:
        """Erase the purged text from the plugin's own store, and return the copies that remain there. May be called
        again for the same purge.

        Raises:
            Refusal: to stop the purge before memory is changed; the owner sees the sentence. Any other exception stops
                it too, with the code ``internal``.
        """
        return ()
