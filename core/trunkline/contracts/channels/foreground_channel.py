"""A foreground channel: one that sits at a person's terminal. The channels worker leaves it to ``trunkline chat``."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trunkline.contracts.channels.channel import Channel, Gateway


@dataclass(frozen=True, slots=True)
class TerminalSession:
    """The requests that a person made on the command line.

    ``conversation`` is one to go on with; ``block`` is where a new one begins (None = the gateway's rules).
    ``trace`` draws the trace of a turn as lines of plain text, where the program can.
    """

    block: str | None = None
    conversation: str | None = None
    trace: Callable[[str], Awaitable[str]] | None = None


class ForegroundChannel(Channel):
    """A channel that owns standard input and output while it runs."""

    @abstractmethod
    async def attend(self, gateway: Gateway, session: TerminalSession) -> int:
        """Talk with the person until they leave. Returns the exit status: 0, or what went wrong."""

    async def run(self, gateway: Gateway) -> None:
        """The same, asked for nothing in particular."""
        await self.attend(gateway, TerminalSession())
