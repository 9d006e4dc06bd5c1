"""Albums: pictures that a person sends together. Telegram delivers each as a message, and a bot learns of no end."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby

import anyio
from telegram import Update

RawUpdates = list[tuple[int, Update | None]]

MAX_UPDATES = 100
"""How many updates Telegram returns at once."""


async def whole_albums(
    ask: Callable[[int | None, int], Awaitable[RawUpdates]], offset: int | None, wait: int, pause: float
) -> list[RawUpdates]:
    """Return the updates from ``offset`` on, those of an album together. ``ask`` returns updates.

    While the last ones are of an album, Telegram is asked again for the same updates after ``pause`` seconds, so
    nothing is confirmed by this. A picture that arrives later is a message of its own.
    """
    updates = await ask(offset, wait)
    while updates and _album_of(updates[-1][1]) and len(updates) < MAX_UPDATES:
        await anyio.sleep(pause)
        known, updates = len(updates), await ask(offset, 0)
        if len(updates) <= known:
            break
    groups = gathered(updates)
    cut = len(updates) >= MAX_UPDATES and len(groups) > 1 and _album_of(updates[-1][1])
    return groups[:-1] if cut else groups


def gathered(updates: Sequence[tuple[int, Update | None]]) -> list[RawUpdates]:
    """Return updates in groups: those of one album that follow each other, and every other one by itself."""
    return [list(group) for _, group in groupby(updates, lambda one: _album_of(one[1]) or f"update {one[0]}")]


def _album_of(update: Update | None) -> str:
    """Return the album of an update, "" if it belongs to none."""
    message = update.message if update is not None else None
    if message is None or not message.media_group_id:
        return ""
    return f"{message.chat.id} {message.media_group_id}"
