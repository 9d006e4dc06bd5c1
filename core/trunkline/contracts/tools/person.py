"""The person behind a block, as a tool sees them: somebody who can be asked, and told something."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from trunkline.errors import NoAnswer, ToolError


class Person(ABC):
    """Whoever answers for a block. What they say is an answer and allows nothing: calls are approved on their own."""

    @abstractmethod
    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask the person, and return one of the options, or their own words. They may be asked for days, by every
        channel.

        Of a call that may be repeated nothing is kept meanwhile: it ends here, as if cancelled, and is run again from
        its beginning once there is an answer, with which this returns then. So ask before doing anything, and ask the
        same. A call that must not run twice waits where it is, for ``[tools] hold`` seconds at most.

        One call may ask 20 times, and an answer has 32 000 characters at most.

        Raises:
            NoAnswer: they would not, did not in time, cannot be asked from here, or were asked too often.
        """

    @abstractmethod
    async def tell(self, channel: str, text: str) -> None:
        """Tell them something through one of their channels, by its name.

        Raises:
            ToolError: no such channel runs, or it cannot reach them; nothing was told.
            OutcomeUnknown: it may have been told.
        """


class Nobody(Person):
    """No person can be asked: on other hosts, in processes apart, and in tests that give none."""

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Raises NoAnswer."""
        raise NoAnswer("Nobody can be asked from here. Put the question into your answer.")

    async def tell(self, channel: str, text: str) -> None:
        """Raises ToolError."""
        raise ToolError(
            "No message can be sent to a person from here. Put it into your answer.", kind="unsupported"
        )
