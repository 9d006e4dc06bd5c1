"""The files that a message brings: those that it mentions, and pictures that were pasted."""

import re
from collections.abc import Callable

import anyio.to_thread

from trunkline.api.channel import IncomingFile, message_with_files
from trunkline.api.gateway import SendMessage
from trunkline.api.model import ModelAbilities
from trunkline_terminal.file_mentions import mentioned_files, read_mentioned

_PICTURE = re.compile(r"\[picture \d+\]")


class MessageFiles:
    """The pictures that were pasted in a session. Each has a name, which stands in the message that brings it.

    Without ``mentions``, ``@file`` is text: what comes through a pipe is not what a person typed, and must not choose
    files to send.
    """

    def __init__(self, *, mentions: bool = True) -> None:
        self._mentions = mentions
        self._pictures: dict[str, bytes] = {}

    def add_picture(self, data: bytes) -> str:
        """Keep a picture, and return its name."""
        name = f"[picture {len(self._pictures) + 1}]"
        self._pictures[name] = data
        return name

    async def with_files(
        self, message: SendMessage, abilities: Callable[[], ModelAbilities]
    ) -> tuple[SendMessage, tuple[str, ...]]:
        """Return the message with its files, and their names. A recording becomes a file of what is said in it.

        Raises:
            TrunklineError: a file cannot be read, or a recording cannot be heard. The sentence says why.
        """
        files = await self._files(message.content)
        if not files:
            return message, ()
        sent = await message_with_files(message, files, abilities())
        return sent, tuple(file.name for file in files)

    async def _files(self, text: str) -> list[IncomingFile]:
        mentions = mentioned_files(text) if self._mentions and "@" in text else []
        files = [await anyio.to_thread.run_sync(read_mentioned, mention) for mention in mentions]
        for name in dict.fromkeys(_PICTURE.findall(text)):
            if name in self._pictures:
                files.append(IncomingFile(f"{name[1:-1]}.png", "image/png", self._pictures[name]))
        return files
