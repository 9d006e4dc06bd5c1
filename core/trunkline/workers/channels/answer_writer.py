"""Shows the answer of a turn in a chat: new posts by the ledger, and the growing text by edits."""

import logging
from collections.abc import Sequence

import anyio

from trunkline.contracts.channels.channel import Gateway, TurnStream
from trunkline.contracts.turns.feed_messages import ApprovalRequested, FeedEvent, TurnEnded
from trunkline.errors import Unavailable
from trunkline.workers.channels.attached_chats import ASKED
from trunkline.workers.channels.chat_posts import ChatPosts
from trunkline.workers.channels.delivery_ledger import OutboundDelivery, PostRefused
from trunkline.workers.channels.letter_channel import TurnText, nothing_said
from trunkline_bus import RemoteFault

log = logging.getLogger(__name__)

AGAIN = 1.0
"""Seconds after which a feed that cannot be read is read again."""


class PostWriter:
    """Shows contents as the posts of a delivery. Raises as ``OutboundDelivery.post`` does."""

    def __init__(self, posts: ChatPosts, delivery: OutboundDelivery) -> None:
        self._posts = posts
        self._delivery = delivery
        self._shown: dict[str, str] = {}

    async def show(self, contents: Sequence[str]) -> None:
        """Show these contents, and nothing else."""
        for number, content in enumerate(contents):
            if number >= len(self._delivery.state.posts):
                await self._add(content)
            await self._change(self._delivery.state.posts[number], content)
        for _ in self._delivery.state.posts[len(contents) :]:
            await self._posts.delete(self._delivery.state.posts[-1])
            await self._delivery.forget_last()

    async def _add(self, content: str) -> None:
        was_open = self._delivery.state.unfinished is not None
        id = await self._delivery.post(content)
        if not was_open:  # else the post may be an earlier one, with another content
            self._shown[id] = content

    async def _change(self, id: str, content: str) -> None:
        if self._shown.get(id) != content:
            await self._posts.edit(id, content)
            self._shown[id] = content


class AnswerWriter:
    """Follows one turn to its end and shows it. ``edit_seconds`` is the time between two edits. Messages that were
    added to the turn are quoted, but not those that were written in ``chat`` (``AttachedChats.name``).
    """

    def __init__(
        self,
        gateway: Gateway,
        posts: ChatPosts,
        delivery: OutboundDelivery,
        edit_seconds: float,
        chat: str,
    ) -> None:
        self._gateway = gateway
        self._posts = posts
        self._delivery = delivery
        self._edit_seconds = edit_seconds
        self._writer = PostWriter(posts, delivery)
        self._text = TurnText(chat=chat, say=gateway.sentences)
        self._asked = delivery.state.details.get(ASKED, "")
        self._changed = anyio.Event()
        if self._asked:
            self._changed.set()
        self._ended = anyio.Event()
        self._reason = ""

    async def run(self) -> None:
        """Show the answer, and record that it is shown. Raises as ``PostWriter.show`` does."""
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow)
            tasks.start_soon(self._show_typing)
            try:
                await self._show_growing()
            except Exception as error:  # raised below, not in an exception group
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        files = [(file.notice, self._posts.draw_file(file)) for file in self._text.files]
        sent = [(notice, content) for notice, content in files if content]
        sent += [("", content) for content in self._posts.draw_places(self._text.text)]
        not_sent = [notice for notice, content in files if not content]
        await self._show_text(not_sent)
        refused = await self._show_files(sent)
        if refused:
            await self._show_text([*not_sent, *refused])
        await self._delivery.finish()

    async def _show_text(self, not_sent: Sequence[str]) -> None:
        """Show the whole text, with notices of the files that are not sent."""
        notes = [self._text.say("answer.file", file=notice) for notice in not_sent]
        text = "\n\n".join(part for part in (self._text.text, *notes) if part)
        if not text and not self._text.files:
            text = nothing_said(self._reason, self._text.say)
        contents = self._drawn(text)
        if not contents and not self._text.files:
            contents = self._drawn(nothing_said("stop", self._text.say))
        await self._writer.show(contents)

    async def _show_files(self, contents: Sequence[tuple[str, str]]) -> list[str]:
        """Send each file and each place once. Return the notices of the files that the service refuses."""
        for number, (notice, content) in enumerate(contents):
            try:
                await self._delivery.post_file(number, content)
            except PostRefused as refused:
                log.warning("a part of an answer is not shown: %s %s", notice, refused)
        ids = self._delivery.state.files
        return [notice for (notice, _), id in zip(contents, ids, strict=False) if notice and not id]

    async def _show_growing(self) -> None:
        """Show the text as it grows, until the turn has ended. A post that was begun is never cancelled here."""
        while not self._ended.is_set():
            await self._changed.wait()
            self._changed = anyio.Event()
            contents = self._drawn(self._text.text)
            if contents and not self._ended.is_set():
                await self._writer.show(contents)
            with anyio.move_on_after(self._edit_seconds):
                await self._ended.wait()

    def _drawn(self, text: str) -> Sequence[str]:
        """Return the posts of the answer so far, below the message that it answers if that was written elsewhere."""
        return self._posts.draw("\n\n".join(part for part in (self._asked, text) if part))

    async def _show_typing(self) -> None:
        while not self._text.text:
            await self._posts.show_typing(self._delivery.state)
            await anyio.sleep(self._posts.typing_seconds)

    async def _follow(self) -> None:
        state = self._delivery.state
        position = ""
        while not self._ended.is_set():
            watch = self._gateway.watch(state.conversation, state.turn, after=position)
            try:
                await self._read(watch)
            except RemoteFault as fault:
                self._text.below = [self._text.say.translate(fault.message)]
                self._end()
            except Unavailable:
                position = watch.position
                await anyio.sleep(AGAIN)

    async def _read(self, watch: TurnStream) -> None:
        async for event in watch:
            self._apply(event)

    def _apply(self, event: FeedEvent) -> None:
        if not isinstance(event, ApprovalRequested):  # the owner gets it with buttons
            self._text.apply(event, None)
        if isinstance(event, TurnEnded):
            self._reason = event.reason
            self._end()
        self._changed.set()

    def _end(self) -> None:
        self._ended.set()
        self._changed.set()
