"""Files that a tool gives to the person: they come with the answer, in whatever way the person's channel shows them."""

from abc import ABC, abstractmethod

from trunkline.contracts.conversations.messages import Attachment
from trunkline.errors import ToolError

MAX_OUTGOING_BYTES = 16 * 1024 * 1024
"""The largest size of a file."""

MAX_OUTGOING_FILES = 10
"""The largest number of files of one call."""


class OutgoingFiles(ABC):
    """The files that a call gives to the person.

    Guarantees: a file is stored in memory beside the conversation before ``add`` returns, under a name with the hash of
    its content. The same content under the same name is stored once, so a repeated call changes nothing. The person
    gets the files if the call succeeds.

    Not guaranteed: that the person's channel can show files. Each channel names those that it cannot show.
    """

    @abstractmethod
    async def add(self, name: str, data: bytes) -> Attachment:
        """Give the person a file of at most ``MAX_OUTGOING_BYTES``; return where it is stored.

        Raises:
            ToolError: ``too_large``: the file is too large, or the call has too many. ``invalid_arguments``: it is
                empty. ``unavailable``: memory does not answer.
        """


class NoOutgoingFiles(OutgoingFiles):
    """No person can be given files: on other hosts, in isolated processes, and in tests without it."""

    async def add(self, name: str, data: bytes) -> Attachment:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError("No file can be given to the person from here.", kind="unsupported")
