"""The chats: which conversation a chat, or a topic of a group, is in."""

import msgspec

from trunkline.api.channel import ChannelRecords


class ChatState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A chat or topic. ``turn`` is the last turn there, "" before the first."""

    conversation: str | None = None
    block: str | None = None
    turn: str = ""


class StrangerList(msgspec.Struct, frozen=True, kw_only=True):
    """The people who were told that the bot is private, the latest last."""

    users: tuple[int, ...] = ()


MAX_STRANGERS = 500
"""How many strangers are remembered. Who is forgotten is told again."""


class Chats:
    """The chats of one bot, as records on the bus. Methods raise Unavailable when the bus does not answer."""

    def __init__(self, records: ChannelRecords, account: str, default_block: str | None) -> None:
        self._records = records
        self._account = account
        self._default = ChatState(block=default_block)

    async def get(self, chat: int, thread: int | None) -> ChatState:
        """Return the state of a chat or topic."""
        record = await self._records.get(self._key(chat, thread), ChatState)
        return record.value if record is not None else self._default

    async def put(self, chat: int, thread: int | None, state: ChatState) -> None:
        """Store the state of a chat or topic."""
        await self._records.put(self._key(chat, thread), state)

    async def move(self, chat: int, to: int) -> None:
        """Let a supergroup continue the conversation of the group that it was."""
        state = await self.get(chat, None)
        if state.conversation is not None and (await self.get(to, None)).conversation is None:
            await self.put(to, None, state)

    async def meet_stranger(self, user: int) -> bool:
        """Remember a stranger; report whether it is new."""
        key = f"strangers.{self._account}"
        record = await self._records.get(key, StrangerList)
        users = record.value.users if record is not None else ()
        if user in users:
            return False
        await self._records.put(key, StrangerList(users=(*users, user)[-MAX_STRANGERS:]))
        return True

    def _key(self, chat: int, thread: int | None) -> str:
        return f"chat.{self._account}.{chat}.{thread or 0}"
