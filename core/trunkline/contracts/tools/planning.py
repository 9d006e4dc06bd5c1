"""Plan mode as a tool sees it: an agent may restrict itself to reading and planning; only a person can lift that."""

from abc import ABC, abstractmethod

from trunkline.errors import ToolError


class Planning(ABC):
    """The plan mode of a conversation, in which the agent only reads and plans. Plan mode holds in every worker and
    after a restart, in addition to the block's own ``plan`` permission.
    """

    @abstractmethod
    async def begin(self) -> None:
        """Start plan mode from the next call on. Does nothing if plan mode holds.

        Raises:
            ToolError: the state could not be stored, so plan mode does not hold.
        """

    @abstractmethod
    async def end(self) -> None:
        """End plan mode. Does nothing if plan mode does not hold.

        Raises:
            ToolError: no person has approved the call that ends it, or the state could not be stored.
        """

    @abstractmethod
    async def holds(self) -> bool:
        """Report whether plan mode holds. Raise ToolError if that cannot be determined."""


class NoPlanning(Planning):
    """Plan mode is not available: on other hosts, in isolated processes, and in tests without it."""

    async def begin(self) -> None:
        """Raise ToolError."""
        raise ToolError("Planning cannot be begun from here.", kind="unsupported")

    async def end(self) -> None:
        """Raise ToolError."""
        raise ToolError("Planning cannot be ended from here.", kind="unsupported")

    async def holds(self) -> bool:
        """Raise ToolError."""
        raise ToolError("Whether the agent only plans cannot be known from here.", kind="unsupported")
