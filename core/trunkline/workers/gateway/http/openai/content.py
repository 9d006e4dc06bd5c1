"""The parts of a message: text, images and files, as both of OpenAI's APIs write them. Pure.

Images come as ``data:`` URLs. Other URLs are refused: the gateway makes no request to a host that a client names
(ADR 67). Files come as base64, as ``data:`` URLs, or by the id of an uploaded file.
"""

import binascii
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from trunkline.contracts.conversations.messages import DocumentFile, Image
from trunkline.workers.gateway.attachment_types import EXTENSIONS, IMAGE_TYPES, TYPE_RULE, media_type_of
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.openai.schemas import ContentPart, FileIn, ImageUrl

Path = tuple[str | int, ...]

PART_RULE = "It is text, an image or a file."
URL_RULE = "Send the image as a data: URL. Trunkline fetches no addresses that a client names."
AUDIO_RULE = "Audio is not understood here. Transcribe it, and send the text."


@dataclass(slots=True)
class MessageContent:
    """The content of one message."""

    text: str = ""
    images: list[Image] = field(default_factory=list)
    documents: list[DocumentFile] = field(default_factory=list)


def file_ids(contents: Iterable[str | Sequence[ContentPart] | None]) -> Iterator[str]:
    """Yield the ids of the uploaded files that these contents name."""
    for content in contents:
        for part in content if isinstance(content, list) else ():
            for file in (part, part.file):
                if file is not None and file.file_id:
                    yield file.file_id


def parse_content(
    content: str | Sequence[ContentPart] | None, files: Mapping[str, DocumentFile], at: Path
) -> MessageContent:
    """Return the content of a message. ``files`` are the uploaded files by their ids. Raises InvalidField."""
    if content is None or isinstance(content, str):
        return MessageContent(text=content or "")
    found = MessageContent()
    for number, part in enumerate(content):
        _add(found, part, files, (*at, number))
    return found


def parse_text(content: str | Sequence[ContentPart] | None, at: Path) -> str:
    """Return the content of a message that can only be text, such as the output of a tool. Raises InvalidField."""
    found = parse_content(content, {}, at)
    if found.images or found.documents:
        raise InvalidField(at, "Only text is understood here.")
    return found.text


def _add(found: MessageContent, part: ContentPart, files: Mapping[str, DocumentFile], at: Path) -> None:
    match part.type:
        case "text" | "input_text" | "output_text":
            found.text += part.text
        case "refusal":
            found.text += part.refusal
        case "image_url" | "input_image":
            _add_image(found, part, files, at)
        case "file" | "input_file":
            found.documents.append(_file(part if part.file is None else part.file, files, at, part.file_url))
        case "input_audio":
            raise InvalidField((*at, "type"), AUDIO_RULE)
        case _:
            raise InvalidField((*at, "type"), PART_RULE)


def _add_image(found: MessageContent, part: ContentPart, files: Mapping[str, DocumentFile], at: Path) -> None:
    if part.image_url is None and part.file_id:
        where: Path = (*at, "file_id")
        uploaded = _uploaded(part.file_id, files, where)
        found.documents.append(uploaded)  # which keeps its name
        media_type: str | None = uploaded.media_type
    else:
        url = part.image_url.url if isinstance(part.image_url, ImageUrl) else part.image_url
        where = (*at, "image_url", "url") if isinstance(part.image_url, ImageUrl) else (*at, "image_url")
        data = _data_of_url(url or "", where, URL_RULE)
        media_type = media_type_of(data)
        found.images.append(Image(media_type=media_type or "", data=data))
    if media_type not in IMAGE_TYPES:
        raise InvalidField(where, "It is a PNG, JPEG, GIF or WebP image.")


def _file(file: FileIn, files: Mapping[str, DocumentFile], at: Path, url: str | None) -> DocumentFile:
    if url:
        raise InvalidField((*at, "file_url"), "Send the file itself. Trunkline fetches no addresses.")
    if file.file_id:
        return _uploaded(file.file_id, files, (*at, "file_id"))
    if file.file_data:
        return _inline_document(file, (*at, "file_data"))
    raise InvalidField(at, "A file has a file_id, or file_data with a filename.")


def _inline_document(file: FileIn, at: Path) -> DocumentFile:
    written = file.file_data or ""
    data = (
        _data_of_url(written, at, TYPE_RULE) if written.startswith("data:") else _decode_base64(written, at)
    )
    media_type = media_type_of(data)
    if media_type is None:
        raise InvalidField(at, TYPE_RULE)
    name = file.filename or f"file.{EXTENSIONS[media_type]}"
    return DocumentFile(media_type=media_type, name=name, data=data)


def _uploaded(id: str, files: Mapping[str, DocumentFile], at: Path) -> DocumentFile:
    if id not in files:
        raise InvalidField(at, "There is no file with this id.")
    return files[id]


def _data_of_url(url: str, at: Path, rule: str) -> bytes:
    """Return the data of a ``data:`` URL (RFC 2397)."""
    head, comma, body = url.partition(",")
    if not head.lower().startswith("data:") or not comma:
        raise InvalidField(at, rule)
    return _decode_base64(body, at) if head.lower().endswith(";base64") else unquote_to_bytes(body)


def _decode_base64(text: str, at: Path) -> bytes:
    try:
        return b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidField(at, "It is not base64.") from error
