"""Plan mode as a tool sees it: an agent may restrict itself to reading and planning; only a person can lift that."""

from abc import ABC, abstractmethod

from trunkline.errors import ToolError


class Planning(ABC):
    """The plan mode of a conversation, in which the agent only reads and plans.

    Guarantees: plan mode holds in every worker and after a restart, in addition to the block's own ``plan`` permission.
    It ends only with a person's approval.

    Not guaranteed: that plan mode stops calls that run already.
    """

    @abstractmethod
    async def begin(self) -> None:
        """Start plan mode from the next call on. Does nothing if plan mode holds.

        Raises:
            ToolError: ``unavailable``: memory did not confirm the change. Whether plan mode holds is unknown.
        """

    @abstractmethod
    async def end(self) -> None:
        """End plan mode. Does nothing if plan mode does not hold.

        Raises:
            ToolError: ``permission_denied``: no person has approved the call that ends plan mode, and it still holds.
                Any other kind: memory did not confirm the change. Plan mode may then hold in part; end it again.
        """

    @abstractmethod
    async def holds(self) -> bool:
        """Report whether plan mode holds. Raises ToolError if that cannot be determined."""


class NoPlanning(Planning):
    """Plan mode is not available: on other hosts, in isolated processes, and in tests without it."""

    async def begin(self) -> None:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError("Planning cannot be begun from here.", kind="unsupported")

    async def end(self) -> None:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError("Planning cannot be ended from here.", kind="unsupported")

    async def holds(self) -> bool:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError("Whether the agent only plans cannot be known from here.", kind="unsupported")
