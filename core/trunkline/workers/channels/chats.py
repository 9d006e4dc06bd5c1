"""The chats of an account: which conversation each chat, or each thread of a chat, is in."""

import msgspec

from trunkline.contracts.channels.records import ChannelRecords


class ChatState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A chat or thread. ``turn`` is the last turn there, "" before the first."""

    conversation: str | None = None
    block: str | None = None
    turn: str = ""


class StrangerList(msgspec.Struct, frozen=True, kw_only=True):
    """The people who were told that the account is private, the latest last."""

    users: tuple[str, ...] = ()


MAX_STRANGERS = 500
"""How many strangers are remembered. Who is forgotten is told again."""


class Chats:
    """The chats of one account, as records on the bus. A chat's key has words of a-z, 0-9, ``-`` and ``_``, joined by
    dots.

    Guarantees: a state is on disk when ``put`` returns.

    Not guaranteed: more than one process at a time: hold an ``AccountLease``.
    """

    def __init__(self, records: ChannelRecords, account: str, default_block: str | None) -> None:
        self._records = records
        self._account = account
        self._default = ChatState(block=default_block)

    async def get(self, chat: str) -> ChatState:
        """Return the state of a chat or thread. Raises Unavailable when the bus does not answer."""
        record = await self._records.get(self._key(chat), ChatState)
        return record.value if record is not None else self._default

    async def put(self, chat: str, state: ChatState) -> None:
        """Store the state of a chat or thread. Raises Unavailable when the bus does not answer."""
        await self._records.put(self._key(chat), state)

    async def move(self, chat: str, to: str) -> None:
        """Let the chat ``to`` continue the conversation of ``chat``, unless it has one. Raises Unavailable when the bus
        does not answer.
        """
        state = await self.get(chat)
        if state.conversation is not None and (await self.get(to)).conversation is None:
            await self.put(to, state)

    async def meet_stranger(self, user: str) -> bool:
        """Remember a stranger; report whether it is new. Raises Unavailable when the bus does not answer."""
        key = f"strangers.{self._account}"
        record = await self._records.get(key, StrangerList)
        users = record.value.users if record is not None else ()
        if user in users:
            return False
        await self._records.put(key, StrangerList(users=(*users, user)[-MAX_STRANGERS:]))
        return True

    def _key(self, chat: str) -> str:
        return f"chat.{self._account}.{chat}"
