"""Loads the attachments of a request's messages from memory, and leaves out those of long ago (ADR 67).

A file is sent in the turn of its message and in the next turns of people, and again when a person names it. After that,
and to a model that does not take its type, the message only says that there was one: a picture must not be paid for
with every later turn. A text is sent as text, to every model.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from trunkline._util.untrusted_text import wrap_context
from trunkline.contracts.conversations.messages import Attachment, DocumentFile, Image, Message
from trunkline.contracts.memory.attachments import MEMORY_READ_ATTACHMENT, ReadAttachment
from trunkline.contracts.models.adapter import ModelAdapter, ModelRequest
from trunkline.errors import ErrorCode, ModelError
from trunkline_bus import Bus, BusError, RemoteFault

RECENT_TURNS = 4
"""The number of turns in which a file is sent, with that of its message."""

MAX_BYTES = 24 * 1024 * 1024
"""The largest size of all files of one request. The newest files have precedence."""

CACHE_BYTES = 64 * 1024 * 1024
READ_SECONDS = 10.0
GONE = "no longer stored"
NOT_SENT = "not sent again; it is sent when the person names it"
NOT_TAKEN = "not sent, because this model does not take files of this type"


@dataclass(slots=True)
class _LoadedFiles:
    """The files of one message as content for the model, and a line about each."""

    images: list[Image]
    documents: list[DocumentFile]
    lines: list[str]


class AttachmentLoader:
    """Loads attachments. Keeps the files used last, since each step of a turn sends them again."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._cached: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    async def load(self, request: ModelRequest, adapter: ModelAdapter) -> ModelRequest:
        """Return the request with the files that the adapter's model gets.

        Raises:
          ModelError: the model does not take a file of this turn, or memory does not answer.
        """
        if not any(message.attachments for message in request.messages):
            return request
        sent = files_to_send(request.messages, request.turn)
        messages = [await self._loaded(message, sent, request, adapter) for message in request.messages]
        return replace(request, messages=tuple(messages))

    async def _loaded(
        self, message: Message, sent: set[str], request: ModelRequest, adapter: ModelAdapter
    ) -> Message:
        if not message.attachments:
            return message
        loaded = _LoadedFiles(list(message.images), list(message.documents), [])
        for file in message.attachments:
            note = await self._add(loaded, file, adapter) if file.path in sent else NOT_SENT
            if note == NOT_TAKEN and message.turn == request.turn:
                raise _not_taken(adapter, file)
            loaded.lines.append(f"[Attached: {file.name}{f' ({note})' if note else ''}]")
        content = "\n\n".join(filter(None, (message.content, "\n".join(loaded.lines))))
        return replace(
            message,
            content=content,
            attachments=(),
            images=tuple(loaded.images),
            documents=tuple(loaded.documents),
        )

    async def _add(self, loaded: _LoadedFiles, file: Attachment, adapter: ModelAdapter) -> str:
        """Add a file to the content of its message. Return why it is not sent, "" if it is."""
        is_image, is_text = file.media_type.startswith("image/"), file.media_type.startswith("text/")
        if not is_text and not (adapter.sees if is_image else adapter.reads):
            return NOT_TAKEN
        data = await self._read(file)
        if data is None:
            return GONE
        if is_text:
            loaded.lines.append(wrap_context(file.name, data.decode("utf-8", "replace")))
        elif is_image:
            loaded.images.append(Image(media_type=file.media_type, data=data))
        else:
            loaded.documents.append(DocumentFile(media_type=file.media_type, name=file.name, data=data))
        return ""

    async def _read(self, file: Attachment) -> bytes | None:
        """Return a file, None if memory no longer has it."""
        if file.path in self._cached:
            self._cached.move_to_end(file.path)
            return self._cached[file.path]
        try:
            data = await self._fetch(file.path)
        except RemoteFault as fault:
            if fault.code == ErrorCode.NOT_FOUND:
                return None
            raise _unreadable(file) from fault
        except BusError as error:
            raise _unreadable(file) from error
        self._keep(file.path, data)
        return data

    async def _fetch(self, path: str) -> bytes:
        data = b""
        while True:
            piece = await self._bus.call(
                MEMORY_READ_ATTACHMENT, ReadAttachment(path=path, offset=len(data)), timeout=READ_SECONDS,
                repeatable=True,
            )  # fmt: skip
            data += piece.data
            if len(data) >= piece.size or not piece.data:
                return data

    def _keep(self, path: str, data: bytes) -> None:
        self._cached[path] = data
        self._size += len(data)
        while self._size > CACHE_BYTES:
            self._size -= len(self._cached.popitem(last=False)[1])


def files_to_send(messages: Sequence[Message], turn: str) -> set[str]:
    """Return the paths of the files that are sent: those of the last turns, and those that the person names now."""
    turns = _turns_of_people(messages)
    recent = set(turns[-RECENT_TURNS:])
    said = "\n".join(one.content for one in messages if one.turn == turn).casefold()
    sent: set[str] = set()
    room = MAX_BYTES
    for message in reversed(messages):
        for file in message.attachments:
            if _turn_of(message) in recent or _names(said, file):
                room -= 0 if file.path in sent else file.size
                if room >= 0:
                    sent.add(file.path)
    return sent


def _names(said: str, file: Attachment) -> bool:
    """Report whether a text names a file, as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(file.name.casefold())}(?!\w)", said) is not None


def _turns_of_people(messages: Sequence[Message]) -> list[str]:
    """Return the turns with messages of people, oldest first. Context of the request belongs to no turn."""
    said = (one for one in messages if one.role == "user" and (one.turn or one.attachments))
    return list(dict.fromkeys(map(_turn_of, said)))


def _turn_of(message: Message) -> str:
    """Return the turn of a message. A message of a transcript that a client sent is a turn of its own."""
    return message.turn or message.id


def _not_taken(adapter: ModelAdapter, file: Attachment) -> ModelError:
    kind = "images" if file.media_type.startswith("image/") else "documents"
    detail = f"the adapter {adapter.name} sends no {kind}; choose a model that takes them"
    return ModelError(ErrorCode.INVALID_REQUEST, "refused", detail)


def _unreadable(file: Attachment) -> ModelError:
    return ModelError(ErrorCode.STORAGE_FAILURE, "unavailable", f"memory does not return {file.name!r}")
