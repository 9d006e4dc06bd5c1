"""The posts of a chat service: the service behind the delivery ledger, and what answers and notices need besides."""

from abc import abstractmethod
from collections.abc import Sequence

import anyio

from trunkline.contracts.conversations.messages import Attachment
from trunkline.workers.channels.approval_buttons import Button
from trunkline.workers.channels.delivery_ledger import DeliveryState, PostService


class ChatPosts(PostService):
    """Sends, changes and deletes the posts of one account. A content is a text that this class writes and reads, such
    as JSON with styles and buttons.

    Guarantees: no method runs twice at a time for one post.

    Not guaranteed: that a post which a person deleted appears again.
    """

    away: tuple[type[Exception], ...] = ()
    """The errors that say that the service does not answer now. What raised one is tried again."""

    typing_seconds: float = 4.0
    """Seconds after which typing is shown again."""

    def __init__(self) -> None:
        self._typing_until: dict[str, float] = {}

    async def load(self) -> None:
        """Read what former processes knew. Called once, before every other method. Does nothing unless overridden.

        Raises:
            Unavailable: the bus does not answer.
        """

    @abstractmethod
    def draw(self, markdown: str) -> Sequence[str]:
        """Return the contents of the posts that show a Markdown text, none for an empty one. Raises nothing."""

    @abstractmethod
    def plain(self, text: str, buttons: Sequence[Button] = ()) -> Sequence[str]:
        """Return the contents of the posts that show a text as it is; the last one has the buttons. Raises nothing."""

    def draw_file(self, file: Attachment) -> str:
        """Return the content of a post that shows a file, "" if this service sends no such file, as by default. The
        answer then names it. Raises nothing.
        """
        return ""

    def draw_places(self, markdown: str) -> Sequence[str]:
        """Return the contents of posts that show the places of a text on a map: those that it links to by ``geo:``
        addresses. None by default. Raises nothing.
        """
        return ()

    @abstractmethod
    async def edit(self, id: str, content: str) -> None:
        """Change what a post shows.

        Raises:
            Exception: one of ``away``.
        """

    @abstractmethod
    async def delete(self, id: str) -> None:
        """Delete a post, if it is there.

        Raises:
            Exception: one of ``away``.
        """

    async def show_typing(self, delivery: DeliveryState) -> None:
        """Show that an answer is being written, unless its chat shows it already. Raises nothing."""
        now = anyio.current_time()
        if now >= self._typing_until.get(delivery.place, 0.0):
            self._typing_until[delivery.place] = now + self.typing_seconds
            await self.type(delivery)

    async def type(self, delivery: DeliveryState) -> None:
        """Ask the service to show typing. Does nothing unless overridden. Raises nothing."""
