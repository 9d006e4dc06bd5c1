"""A foreground channel, which uses a person's terminal. ``trunkline chat`` runs it, not the channels worker."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trunkline.contracts.channels.channel import Channel, Gateway


@dataclass(frozen=True, slots=True)
class TerminalSession:
    """The options that a person gave on the command line.

    ``conversation`` is the conversation to continue. ``block`` is the block of a new conversation; None lets the
    gateway's rules choose. ``trace`` returns the trace of a turn as lines of plain text; None if not available. With
    ``attached`` the channel also shows what is said in the conversation through other channels.
    """

    block: str | None = None
    conversation: str | None = None
    trace: Callable[[str], Awaitable[str]] | None = None
    attached: bool = False


class ForegroundChannel(Channel):
    """A channel that uses standard input and output while it runs. ``trunkline chat`` runs it; a channels worker does
    not.

    Guarantees: the terminal belongs to the channel alone until ``attend`` returns.

    Not guaranteed: a terminal: standard input and output may be pipes.
    """

    @abstractmethod
    async def attend(self, gateway: Gateway, session: TerminalSession) -> int:
        """Talk with the person until the person leaves. Return the exit status: 0, or an error status. The method is
        cancelled when the terminal closes.

        Raises:
            TrunklineError: the command ends with this sentence and its hint. It is not run again after any exception.
        """

    async def run(self, gateway: Gateway) -> None:
        """Run without command-line options. Raises as ``attend`` does."""
        await self.attend(gateway, TerminalSession())
