"""Files for the person in main memory, for tests of tools that give them."""

from trunkline.contracts.conversations.messages import Attachment
from trunkline.contracts.tools.outgoing_files import OutgoingFiles


class ScriptedOutgoingFiles(OutgoingFiles):
    """An ``OutgoingFiles``. ``sent`` are the contents by name. Limits are not checked."""

    def __init__(self) -> None:
        self.sent: dict[str, bytes] = {}

    async def add(self, name: str, data: bytes) -> Attachment:
        """Keep a file."""
        self.sent[name] = data
        return Attachment(path=name, name=name, media_type="text/plain", size=len(data))
