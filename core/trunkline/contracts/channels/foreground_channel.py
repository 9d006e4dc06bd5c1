"""A foreground channel, which uses a person's terminal. ``trunkline chat`` runs it, not the channels worker."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from trunkline.contracts.channels.channel import Channel, Gateway


@dataclass(frozen=True, slots=True)
class TerminalSession:
    """The options that a person gave on the command line, and what the command line does for the channel.

    ``conversation`` is the conversation to continue. ``block`` is the block of a new conversation; None lets the
    gateway's rules choose. With ``attached`` the channel also shows what is said in the conversation through other
    channels. With ``resume`` the person first chooses the conversation to continue. With ``plain`` the channel prints
    lines only: it moves no cursor and draws nothing, as a screen reader needs it.

    The functions are None if not available. ``trace`` returns the trace of a turn as lines of plain text.
    ``run_command`` runs a command of ``trunkline`` with these arguments, and returns what it prints; it raises
    TrunklineError with the command's sentence if the command fails. ``mode`` returns the mode of a block in a
    conversation in a word or two, such as ``plan mode``; it raises TrunklineError or RemoteFault if it is not known.
    """

    block: str | None = None
    conversation: str | None = None
    trace: Callable[[str], Awaitable[str]] | None = None
    attached: bool = False
    resume: bool = False
    plain: bool = False
    run_command: Callable[[Sequence[str]], Awaitable[str]] | None = None
    mode: Callable[[str, str | None], Awaitable[str]] | None = None


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
