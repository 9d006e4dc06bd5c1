"""The posts of the bot in its channels: the service behind the delivery ledger.

Each message has a nonce in its metadata, which is recorded before the message is sent; a file, which can have no
metadata, has a part of it in its name. So an unfinished post is looked
for by its nonce among the messages after the newest one that was known before, and only if it is not there, it is sent
again.
"""

from collections.abc import Awaitable, Callable, Sequence
from uuid import uuid4

from trunkline import RemoteFault
from trunkline.api.channel import (
    Attachment,
    Button,
    ChatPosts,
    DeliveryState,
    PostRefused,
    UnfinishedPost,
)
from trunkline_slack.bot import AWAY, SlackBot
from trunkline_slack.content import (
    decode_content,
    file_content,
    markdown_contents,
    marked_name,
    plain_contents,
)

MARGIN = 60.0
"""Seconds before the newest known message from which a post is looked for."""


class SlackPosts(ChatPosts):
    """Sends and edits messages of the bot. A place is ``CHANNEL`` or ``CHANNEL:THREAD``, the id of a post
    ``CHANNEL:TIME``, that of a file ``CHANNEL:FILE``, and a mark ``TIME:NONCE``. ``read_file`` returns the content of a
    file, as ``Gateway.file`` does.
    """

    away = AWAY

    def __init__(self, bot: SlackBot, read_file: Callable[[Attachment], Awaitable[bytes]]) -> None:
        super().__init__()
        self._read_file = read_file
        self._bot = bot
        self._newest = 0.0

    def note(self, ts: str) -> None:
        """Remember the time of a message. Slack's times grow in all channels."""
        self._newest = max(self._newest, float(ts))

    def mark(self, place: str) -> str:
        """Return from when to look for a post, and a new nonce."""
        return f"{max(0.0, self._newest - MARGIN):.6f}:{uuid4().hex}"

    def draw(self, markdown: str) -> Sequence[str]:
        """Return the contents that show a Markdown text."""
        return [content.encode() for content in markdown_contents(markdown)]

    def plain(self, text: str, buttons: Sequence[Button] = ()) -> Sequence[str]:
        """Return the contents that show a text as it is; the last one has the buttons."""
        return [content.encode() for content in plain_contents(text, buttons)]

    def draw_file(self, file: Attachment) -> str:
        """Return the content that shows a file, "" if Slack does not take it."""
        content = file_content(file)
        return content.encode() if content is not None else ""

    async def _data(self, file: Attachment) -> bytes:
        try:
            return await self._read_file(file)
        except RemoteFault as fault:
            raise PostRefused(f"The file {file.name} is not sent: {fault.message}") from fault

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        """Send a message. Raises as ``PostService.post`` does."""
        mark = delivery.unfinished.mark if delivery.unfinished is not None else ":"
        channel, _, thread = place.partition(":")
        decoded, nonce = decode_content(content), mark.partition(":")[2]
        if decoded.file is not None:
            data = await self._data(decoded.file)
            id = await self._bot.send_file(channel, thread, decoded.file, data, nonce=nonce)
            return f"{channel}:{id}"
        ts = await self._bot.send(channel, thread, decoded, nonce=nonce)
        self.note(ts)
        return f"{channel}:{ts}"

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        """Look for a message. Raises as ``PostService.find`` does."""
        channel, _, thread = place.partition(":")
        after, _, nonce = post.mark.partition(":")
        file = decode_content(post.content).file
        if file is not None:
            id = await self._bot.find_own_file(channel, thread, after, marked_name(file.name, nonce))
            return f"{channel}:{id}" if id is not None else None
        ts = await self._bot.find_own(channel, thread, after, nonce)
        return f"{channel}:{ts}" if ts is not None else None

    async def edit(self, id: str, content: str) -> None:
        """Change what a post shows. A post that a person has deleted stays deleted."""
        channel, _, ts = id.partition(":")
        await self._bot.edit(channel, ts, decode_content(content))

    async def delete(self, id: str) -> None:
        """Delete a post."""
        channel, _, ts = id.partition(":")
        await self._bot.delete(channel, ts)
