"""The summary of the data that a purge left: one line per conversation, wherever the data is. Pure."""

from collections.abc import Sequence

from trunkline.contracts.memory.purge import RemainingCopy


def merge_by_conversation(kept: Sequence[RemainingCopy]) -> tuple[RemainingCopy, ...]:
    """The same with all that is kept of one conversation in one line, and these first."""
    places: dict[str, list[RemainingCopy]] = {}
    for one in kept:
        if one.conversation:
            places.setdefault(one.conversation, []).append(one)
    rest = [one for one in kept if not one.conversation]
    return (*(_merge_kept(conversation, ones) for conversation, ones in places.items()), *rest)


def _merge_kept(conversation: str, kept: Sequence[RemainingCopy]) -> RemainingCopy:
    where = ", ".join(dict.fromkeys(one.where for one in kept))
    ends = [one.until for one in kept if one.until is not None]
    return RemainingCopy(
        where=f"conversation {conversation}",
        what=f"It has lines of it, in {where}. Purge it as well, by this id.",
        until=max(ends) if len(ends) == len(kept) else None,
        conversation=conversation,
    )
