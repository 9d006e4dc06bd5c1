"""The files that a call gives to the person: stored beside the conversation, and named in the call's outcome."""

from mimetypes import guess_type

from trunkline.contracts.conversations.messages import Attachment
from trunkline.contracts.memory.attachments import MEMORY_STORE_ATTACHMENTS, NewAttachment, StoreAttachments
from trunkline.contracts.tools.outgoing_files import MAX_OUTGOING_BYTES, MAX_OUTGOING_FILES, OutgoingFiles
from trunkline.contracts.workers.subjects import IMPORT_STORE
from trunkline.errors import ToolError
from trunkline.workers.tools.call_registry import ActiveCall
from trunkline_bus import Bus, BusError, new_id

STORE_SECONDS = 30.0
MAX_NAME_CHARS = 200


class CallOutgoingFiles(OutgoingFiles):
    """Stores the files of one call in memory, by way of the object store as the gateway does (ADR 67)."""

    def __init__(self, bus: Bus, run: ActiveCall) -> None:
        self._bus = bus
        self._run = run

    async def add(self, name: str, data: bytes) -> Attachment:
        """Store a file. Raises as ``OutgoingFiles.add`` does."""
        if not data:
            raise ToolError("An empty file cannot be given to the person.", kind="invalid_arguments")
        if len(data) > MAX_OUTGOING_BYTES:
            limit = MAX_OUTGOING_BYTES // 1024 // 1024
            raise ToolError(f"A file for the person has at most {limit} MiB.", kind="too_large")
        if len(self._run.files) >= MAX_OUTGOING_FILES:
            raise ToolError(f"A call gives the person at most {MAX_OUTGOING_FILES} files.", kind="too_large")
        try:
            file = await self._stored(_plain_name(name), data)
        except BusError as error:
            raise ToolError(f"The file was not stored: {error}", kind="unavailable") from error
        self._run.add_file(file)
        return file

    async def _stored(self, name: str, data: bytes) -> Attachment:
        call, object = self._run.call, f"outgoing-{new_id()}"
        await self._bus.objects(IMPORT_STORE).put(object, data)
        media_type = guess_type(name)[0] or "application/octet-stream"
        command = StoreAttachments(
            block=call.block,
            conversation=call.conversation,
            actor=call.actor,
            files=(NewAttachment(name=name, media_type=media_type, object=object),),
        )
        reply = await self._bus.call(MEMORY_STORE_ATTACHMENTS, command, timeout=STORE_SECONDS)
        return reply.attachments[0]


def _plain_name(name: str) -> str:
    """Return the name of a file without folders and invisible characters."""
    plain = "".join(letter for letter in name if letter.isprintable())
    return plain.replace("\\", "/").rpartition("/")[2].strip()[-MAX_NAME_CHARS:] or "file"
