"""The person's messages that wait for the running turn: the list, and the way back."""

from typing import TYPE_CHECKING

from trunkline import TrunklineError

if TYPE_CHECKING:
    from trunkline_terminal.chat_session import ChatSession
    from trunkline_terminal.turn_display import TurnRef


class QueuedMessages:
    """The messages of a session that were accepted and whose turns have not begun. The platform stores them: they are
    answered even if the terminal is closed."""

    def __init__(self, session: "ChatSession") -> None:
        self._session = session

    def _waiting(self) -> "list[TurnRef]":
        return [followed for followed in self._session.turns.waiting if followed.content]

    def texts(self) -> list[str]:
        """The messages, in the order of their turns."""
        return [followed.content for followed in self._waiting()]

    async def take_back(self, number: str = "") -> str:
        """Cancel the turn of a message that waits, the last one without a number, and return the message. The
        conversation shows that it was cancelled.

        Raises:
            TrunklineError: no such message waits.
            RemoteFault: the turn cannot be cancelled.
        """
        waiting = self._waiting()
        if number and not (number.isascii() and number.isdigit()):
            raise TrunklineError(f"{number!r} is no number.", hint="/queue lists the messages that wait.")
        at = int(number) if number else len(waiting)
        if not 0 < at <= len(waiting):
            raise TrunklineError(
                "No message waits." if not waiting else f"No message with the number {at} waits.",
                hint="/queue lists the messages that wait.",
            )
        followed = waiting[at - 1]
        session = self._session
        await session.outage.retry(lambda: session.gateway.cancel(followed.turn))
        session.turns.forget(followed)
        return followed.content
