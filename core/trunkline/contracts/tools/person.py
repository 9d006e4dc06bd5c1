"""The person responsible for a block, whom a tool can ask and notify."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from trunkline.errors import NoAnswer, ToolError


class Person(ABC):
    """The person responsible for a block.

    Guarantees: a person's answer approves no call. Calls are approved separately.

    Not guaranteed: that a person reads a question or a message.
    """

    @abstractmethod
    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask the person, and return one of the options or the person's own words. Every channel shows the question,
        for days if the person does not answer. A call may ask 20 times. An answer has at most 32 000 characters.

        Not guaranteed: that the code before this call runs once. A call that may be repeated does not wait: this method
        ends it as if cancelled, and the call is run again from its beginning once there is an answer, which this method
        then returns. So ask before any other work, and ask the same question each time. A call that must not run twice
        waits inside this method, for ``[tools] answer_wait`` seconds at most.

        Raises:
            NoAnswer: the person declined, did not answer in time, cannot be asked from here, or was asked too often.
            ToolError: ``invalid_arguments`` or ``too_large``: the question is empty or too long, or there are more than
                20 options or longer ones than 200 characters. Nobody was asked.
        """

    @abstractmethod
    async def tell(self, channel: str, text: str) -> None:
        """Notify the person through the channel with this name. When this method returns, the channel has accepted the
        text. With "" the person's preferences choose the channels and the time, and the text is stored until then.

        Raises:
            ToolError: no such channel runs, or the channel cannot reach the person; nothing was sent.
            OutcomeUnknown: the message may have been sent.
        """


class Nobody(Person):
    """No person can be asked: on other hosts, in isolated processes, and in tests without a person."""

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask nobody. Raises NoAnswer in every case."""
        raise NoAnswer("No person can be asked here. Put the question into your answer.")

    async def tell(self, channel: str, text: str) -> None:
        """Send nothing. Raises ToolError ``unsupported`` in every case."""
        raise ToolError(
            "No message can be sent to a person from here. Put it into your answer.", kind="unsupported"
        )
