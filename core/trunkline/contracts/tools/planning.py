"""Planning, as a tool sees it: an agent may bind itself to reading and planning, and only a person unbinds it."""

from abc import ABC, abstractmethod

from trunkline.errors import ToolError


class Planning(ABC):
    """The plan mode of a conversation, in which the agent only reads and plans. It holds in every worker, also
    after a restart, and beside what the owner has set for the whole block.
    """

    @abstractmethod
    async def begin(self) -> None:
        """From the next call on. Harmless when it holds already.

        Raises:
            ToolError: it could not be kept, so it does not hold.
        """

    @abstractmethod
    async def end(self) -> None:
        """Let the agent work again. Harmless when it does not plan.

        Raises:
            ToolError: no person has approved the call that wants this, or it could not be kept.
        """

    @abstractmethod
    async def holds(self) -> bool:
        """Report whether the agent has bound itself. Raises ToolError when that cannot be known."""


class NoPlanning(Planning):
    """Nothing here could hold an agent to it: on other hosts, in processes apart, and in tests that give none."""

    async def begin(self) -> None:
        """Raises ToolError."""
        raise ToolError("Planning cannot be begun from here.", kind="unsupported")

    async def end(self) -> None:
        """Raises ToolError."""
        raise ToolError("Planning cannot be ended from here.", kind="unsupported")

    async def holds(self) -> bool:
        """Raises ToolError."""
        raise ToolError("Whether the agent only plans cannot be known from here.", kind="unsupported")
