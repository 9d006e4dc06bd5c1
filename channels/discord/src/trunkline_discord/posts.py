"""The posts of the bot in its channels: the service behind the delivery ledger.

Discord returns the same message for the same nonce of the same bot, for some minutes. And messages can be listed. So an
unfinished post is looked for among the bot's messages after the newest one that was known before, and if it is not
there, it is sent with the nonce that it had: a request that is still on its way cannot make a second message of it.
Posts to one channel are sent one after another and all known ones have smaller ids, so the only message of the bot that
can be found is the unfinished post.
"""

from collections.abc import Awaitable, Callable, Sequence
from uuid import uuid4

import hikari
import msgspec

from trunkline import RemoteFault
from trunkline.api.channel import (
    Attachment,
    Button,
    ChannelRecords,
    ChatPosts,
    DeliveryState,
    PostRefused,
    UnfinishedPost,
)
from trunkline_discord.bot import DiscordBot
from trunkline_discord.content import decode_content, file_content, markdown_contents, plain_contents

NONCE_LENGTH = 25
"""Characters that Discord permits in a nonce."""


class NewestPost(msgspec.Struct, frozen=True, kw_only=True):
    """The newest id that is known of a channel's messages."""

    id: int = 0


class DiscordPosts(ChatPosts):
    """Sends and edits messages of the bot. The id of a post is ``CHANNEL:MESSAGE``; a mark is ``MESSAGE:NONCE``.
    ``read_file`` returns the content of a file, as ``Gateway.file`` does.
    """

    away = (hikari.HTTPError, TimeoutError)
    typing_seconds = 8.0  # Discord shows it for ten

    def __init__(
        self,
        bot: DiscordBot,
        records: ChannelRecords,
        account: str,
        read_file: Callable[[Attachment], Awaitable[bytes]],
    ) -> None:
        super().__init__()
        self._read_file = read_file
        self._bot = bot
        self._records = records
        self._prefix = f"newest.{account}"
        self._newest: dict[str, int] = {}

    async def load(self) -> None:
        """Read what former processes knew. Raises Unavailable if the bus does not answer."""
        for record in await self._records.list(self._prefix, NewestPost):
            self._newest[record.key.rpartition(".")[2]] = record.value.id

    def note(self, channel: int, message: int) -> None:
        """Remember the id of a message of a person. After a restart the bot's own messages are enough."""
        self._newest[str(channel)] = max(message, self._newest.get(str(channel), 0))

    async def _note_post(self, place: str, message: int) -> None:
        self.note(int(place), message)
        await self._records.put(f"{self._prefix}.{place}", NewestPost(id=message))

    def mark(self, place: str) -> str:
        """Return the newest id of the channel, and a new nonce."""
        return f"{self._newest.get(place, 0)}:{uuid4().hex[:NONCE_LENGTH]}"

    def draw(self, markdown: str) -> Sequence[str]:
        """Return the contents that show a Markdown text."""
        return [content.encode() for content in markdown_contents(markdown)]

    def plain(self, text: str, buttons: Sequence[Button] = ()) -> Sequence[str]:
        """Return the contents that show a text as it is; the last one has the buttons."""
        return [content.encode() for content in plain_contents(text, buttons)]

    def draw_file(self, file: Attachment) -> str:
        """Return the content that shows a file, "" if it is too large for Discord."""
        content = file_content(file)
        return content.encode() if content is not None else ""

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        """Send a message. Raises as ``PostService.post`` does."""
        mark = delivery.unfinished.mark if delivery.unfinished is not None else ":"
        return await self._send(place, content, delivery, mark.partition(":")[2])

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        """Look for a message, and send it if it is not there. Raises as ``PostService.find`` does."""
        after, _, nonce = post.mark.partition(":")
        message = await self._bot.find_own(int(place), int(after), nonce)
        if message is not None:
            await self._note_post(place, message)
            return f"{place}:{message}"
        try:
            return await self._send(place, post.content, delivery, nonce)
        except PostRefused:
            return None

    async def _send(self, place: str, content: str, delivery: DeliveryState, nonce: str) -> str:
        reply_to = int(delivery.details.get("reply_to", 0)) or None
        decoded = decode_content(content)
        data = await self._data(decoded.file) if decoded.file is not None else b""
        message = await self._bot.send(int(place), decoded, data, nonce=nonce, reply_to=reply_to)
        await self._note_post(place, message)
        return f"{place}:{message}"

    async def _data(self, file: Attachment) -> bytes:
        try:
            return await self._read_file(file)
        except RemoteFault as fault:
            raise PostRefused(f"The file {file.name} is not sent: {fault.message}") from fault

    async def edit(self, id: str, content: str) -> None:
        """Change what a post shows. A post that a person has deleted stays deleted."""
        channel, message = _parsed(id)
        await self._bot.edit(channel, message, decode_content(content))

    async def delete(self, id: str) -> None:
        """Delete a post."""
        await self._bot.delete(*_parsed(id))

    async def type(self, delivery: DeliveryState) -> None:
        """Show that an answer is being written."""
        await self._bot.show_typing(int(delivery.place))


def _parsed(id: str) -> tuple[int, int]:
    channel, _, message = id.partition(":")
    return int(channel), int(message)
