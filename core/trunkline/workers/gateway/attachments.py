"""The attachment service: recognises the files of a message, and stores them in memory before the message is accepted.

A message in the inbox, the journal and the conversation only names its files, so each file exists once (ADR 67).
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import Attachment, DocumentFile, Image, Message
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.memory.attachments import MEMORY_STORE_ATTACHMENTS, NewAttachment, StoreAttachments
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.workers.subjects import IMPORT_STORE
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.attachment_types import EXTENSIONS, TYPE_RULE, media_type_of
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline_bus import Bus, new_id

MEGABYTE = 1024 * 1024
STORE_SECONDS = 30.0
MAX_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class AttachmentLimits:
    """The largest number of files of one message, the largest size of a file, and that of all files of a message, in
    bytes."""

    files: int
    size: int
    total: int


class AttachmentService:
    """Checks and stores the files of messages.

    Methods raise Refusal with a fixed code, and BusError when memory does not answer.
    """

    def __init__(self, bus: Bus, limits: AttachmentLimits) -> None:
        self._bus = bus
        self._objects = bus.objects(IMPORT_STORE)
        self.limits = limits

    def check(self, message: SendMessage) -> None:
        """Refuse files that are too many, too large, empty, or of a type that models do not take."""
        files: list[Image | DocumentFile] = [*message.images, *message.documents]
        for one in (*(message.history or ()), *message.preceding):
            files.extend((*one.images, *one.documents))
        if len(files) > self.limits.files:
            raise InvalidField(("attachments",), f"A request has at most {self.limits.files} files.")
        if any(len(file.data) > self.limits.size for file in files):
            raise self._too_large(f"A file has at most {self.limits.size // MEGABYTE} MiB.")
        if sum(len(file.data) for file in files) > self.limits.total:
            raise self._too_large(
                f"The files of a request have at most {self.limits.total // MEGABYTE} MiB together."
            )
        for file in files:
            if not file.data:
                raise InvalidField(("attachments",), "A file is empty.")
            if media_type_of(file.data) is None:
                raise InvalidField(("attachments",), TYPE_RULE)

    def _too_large(self, reason: str) -> InvalidField:
        return InvalidField(("attachments",), reason, ErrorCode.TOO_LARGE)

    async def stored(self, request: TurnRequested) -> TurnRequested:
        """Return the request with the names of its files in place of their bytes, once memory has committed them.

        Names that the sender put into its messages are removed: they could be those of another conversation's files.
        """
        preceding = tuple(request.preceding or ())
        messages = (*(request.history or ()), *preceding, request.message)
        files = [file for one in messages for file in _files(one)]
        if not files and not any(one.attachments or one.files for one in messages):
            return request
        attachments = iter(await self._store(request, files) if files else ())
        named = [_with_attachments(one, attachments) for one in messages]
        at = len(messages) - len(preceding) - 1
        return replace(
            request,
            history=None if request.history is None else tuple(named[:at]),
            preceding=tuple(named[at:-1]) or request.preceding,
            message=named[-1],
        )

    async def _store(self, request: TurnRequested, files: list[DocumentFile]) -> tuple[Attachment, ...]:
        sent: list[NewAttachment] = []
        for file in files:
            name = f"attachment-{new_id()}"
            await self._objects.put(name, file.data)
            sent.append(NewAttachment(name=file.name, media_type=file.media_type, object=name))
        command = StoreAttachments(
            block=request.block, conversation=request.conversation, actor=request.actor, files=tuple(sent)
        )
        reply = await self._bus.call(MEMORY_STORE_ATTACHMENTS, command, timeout=STORE_SECONDS)
        if len(reply.attachments) != len(files):
            raise refusal(ErrorCode.STORAGE_FAILURE)
        return reply.attachments


def _files(message: Message) -> Iterator[DocumentFile]:
    """Yield the files of a message, each with a name and with the type that its content has."""
    found: tuple[Image | DocumentFile, ...] = (*message.images, *message.documents)
    for file in found:
        media_type = media_type_of(file.data) or ""
        yield DocumentFile(media_type=media_type, name=_name(file, media_type), data=file.data)


def _name(file: Image | DocumentFile, media_type: str) -> str:
    """Return the name of a file without folders and invisible characters. An image without a name gets one."""
    given = file.name if isinstance(file, DocumentFile) else ""
    plain = "".join(letter for letter in given if letter.isprintable())
    name = plain.replace("\\", "/").rpartition("/")[2].strip()[-MAX_NAME_CHARS:]
    return name or f"image-{hashlib.sha256(file.data).hexdigest()[:6]}.{EXTENSIONS[media_type]}"


def _with_attachments(message: Message, attachments: Iterator[Attachment]) -> Message:
    taken = tuple(islice(attachments, len(message.images) + len(message.documents)))
    return replace(message, images=(), documents=(), attachments=taken, files=())
