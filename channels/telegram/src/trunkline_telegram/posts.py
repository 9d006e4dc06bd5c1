"""The posts of the bot in its chats: the service behind the delivery ledger.

Telegram has no key that makes a repeated ``sendMessage`` harmless, and no way to list messages. But an edit of a
message that is not there, or not the bot's, is refused. So an unfinished post is looked for among the ids after the
newest one that was known before: Telegram numbers the messages of all private chats and basic groups of a bot
together, and those of each supergroup by themselves. Posts to one chat are sent one after another and all known ones
have smaller ids, so the only message of the bot that can be found is the unfinished post. A file is looked for by its
buttons, of which it has none: to set them to none changes nothing.
"""

from collections.abc import Awaitable, Callable, Sequence

import anyio
import msgspec
from telegram.error import TelegramError

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
from trunkline_telegram.bot_api import BotApi, ChatMoved
from trunkline_telegram.content import (
    PostContent,
    decode_content,
    file_content,
    markdown_contents,
    place_contents,
    plain_contents,
)
from trunkline_telegram.retry_times import RetryTimes


class NewestId(msgspec.Struct, frozen=True, kw_only=True):
    """The newest message id that is known of a numbering. ``moved`` is the chat that a group has become, 0 if none."""

    id: int = 0
    moved: int = 0


class TelegramPosts(ChatPosts):
    """Sends and edits messages of the bot. The id of a post is ``CHAT:MESSAGE``. ``read_file`` returns the content of a
    file, as ``Gateway.file`` does.
    """

    away = (TelegramError,)
    typing_seconds = 4.0  # Telegram shows it for five

    def __init__(
        self,
        api: BotApi,
        records: ChannelRecords,
        account: str,
        times: RetryTimes,
        read_file: Callable[[Attachment], Awaitable[bytes]],
    ) -> None:
        super().__init__()
        self._read_file = read_file
        self._api = api
        self._times = times
        self._records = records
        self._prefix = f"newest.{account}"
        self._newest: dict[str, int] = {}
        self._moved: dict[int, int] = {}
        self._unanswered_at: dict[str, float] = {}

    async def load(self) -> None:
        """Read what former processes knew. Raises Unavailable if the bus does not answer."""
        for record in await self._records.list(self._prefix, NewestId):
            key = record.key.rpartition(".")[2]
            self._newest[key] = record.value.id
            if record.value.moved:
                self._moved[int(key)] = record.value.moved

    async def note(self, chat: int, message: int) -> None:
        """Remember an id that Telegram has given to a message of a chat."""
        numbering = _numbering(chat)
        if message > self._newest.get(numbering, 0):
            self._newest[numbering] = message
            await self._records.put(f"{self._prefix}.{numbering}", NewestId(id=message))

    async def note_move(self, chat: int, to: int) -> None:
        """Remember that a group has become a supergroup."""
        self._moved[chat] = to
        await self._records.put(f"{self._prefix}.{chat}", NewestId(moved=to))

    def mark(self, place: str) -> str:
        """Return the newest id of the chat's numbering."""
        return str(self._newest.get(_numbering(self._current(int(place))), 0))

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        """Send a message. Raises as ``PostService.post`` does."""
        chat, decoded = self._current(int(place)), decode_content(content)
        data = await self._data(decoded.file) if decoded.file is not None else b""
        try:
            message = await self._send(chat, decoded, data, delivery)
        except ChatMoved as moved:
            await self.note_move(chat, moved.chat)
            chat = moved.chat
            message = await self._send(chat, decoded, data, delivery)
        await self.note(chat, message)
        return f"{chat}:{message}"

    async def _data(self, file: Attachment) -> bytes:
        try:
            return await self._read_file(file)
        except RemoteFault as fault:
            raise PostRefused(f"The file {file.name} is not sent: {fault.message}") from fault

    async def _send(self, chat: int, content: PostContent, data: bytes, delivery: DeliveryState) -> int:
        thread, reply_to = (int(delivery.details.get(name, 0)) or None for name in ("thread", "reply_to"))
        try:
            if content.file is not None:
                return await self._api.send_file(chat, content.file, data, thread=thread, reply_to=reply_to)
            if content.place is not None:
                return await self._api.send_place(chat, content.place, thread=thread, reply_to=reply_to)
            return await self._api.send(chat, content, thread=thread, reply_to=reply_to)
        except (ChatMoved, PostRefused):
            raise
        except BaseException:
            self._unanswered_at[delivery.place] = anyio.current_time()
            raise

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        """Look for a message by editing it, or its buttons. Raises as ``PostService.find`` does."""
        since = self._unanswered_at.pop(place, None)
        if since is not None:
            await anyio.sleep_until(since + self._times.settling)
        chat, content, after = self._current(int(place)), decode_content(post.content), int(post.mark)
        for message in range(after + 1, after + 1 + self._times.searched):
            if await self._is_there(chat, message, content):
                await self.note(chat, message)
                return f"{chat}:{message}"
        return None

    async def _is_there(self, chat: int, message: int, content: PostContent) -> bool:
        if content.file is not None or content.place is not None:
            return await self._api.has_message(chat, message)
        return await self._api.edit(chat, message, content)

    def draw_file(self, file: Attachment) -> str:
        """Return the content that shows a file, "" if it is too large for Telegram."""
        content = file_content(file)
        return content.encode() if content is not None else ""

    def draw_places(self, markdown: str) -> Sequence[str]:
        """Return the contents that show the places in a text on a map."""
        return [content.encode() for content in place_contents(markdown)]

    def draw(self, markdown: str) -> Sequence[str]:
        """Return the contents that show a Markdown text."""
        return [content.encode() for content in markdown_contents(markdown)]

    def plain(self, text: str, buttons: Sequence[Button] = ()) -> Sequence[str]:
        """Return the contents that show a text as it is; the last one has the buttons."""
        return [content.encode() for content in plain_contents(text, buttons)]

    async def edit(self, id: str, content: str) -> None:
        """Change what a post shows. A post that a person has deleted stays deleted."""
        chat, message = _parsed(id)
        try:
            await self._api.edit(self._current(chat), message, decode_content(content))
        except ChatMoved as moved:
            await self.note_move(chat, moved.chat)

    async def delete(self, id: str) -> None:
        """Delete a post."""
        chat, message = _parsed(id)
        await self._api.delete(self._current(chat), message)

    async def type(self, delivery: DeliveryState) -> None:
        """Show that an answer is being written."""
        thread = int(delivery.details.get("thread", 0)) or None
        await self._api.show_typing(self._current(int(delivery.place)), thread)

    def _current(self, chat: int) -> int:
        return self._moved.get(chat, chat)


def _numbering(chat: int) -> str:
    """Return the numbering of a chat's messages. A supergroup's id begins with -100."""
    return str(chat) if str(chat).startswith("-100") else "account"


def _parsed(id: str) -> tuple[int, int]:
    chat, _, message = id.partition(":")
    return int(chat), int(message)
