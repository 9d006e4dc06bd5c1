"""Convert the items that an importer yields into an archive that memory can import.

The archive has no history. A text file that the importer did not read is kept under ``imported/<system>/``. The archive
leaves out a file whose name says that it holds keys, and an unread file whose text looks like a key. The manifest lists
the files that are left out.
"""

import hashlib
import re
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import msgspec

import trunkline
from trunkline._util.archives.manifest import MANIFEST, MEMORY, ArchiveManifest, ImportGap
from trunkline._util.archives.writer import ArchiveWriter, write_archive
from trunkline._util.paths import PROTECTED_NAMES
from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.blocks.paths import block_folder
from trunkline.contracts.memory.importer import Imported, ImportedConversation, ImportedFile, Importer, Source
from trunkline.contracts.schedules.paths import schedule_of
from trunkline.errors import TrunklineError

MAX_UNUSED_FILE_BYTES = 4 * 1024 * 1024
"""The size of the largest file that is kept although the importer did not read it."""

_SECRET_NAME = re.compile(
    r"(auth|credentials?|secrets?|tokens?|oauth|keys?|apikeys?|\.env)([-_.].*)?|.*[-_.](token|secret|key|pem)",
    re.I,
)
_CONVERSATION_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def convert_source(importer: Importer, source: Source, target: Path) -> None:
    """Write the items that ``importer`` finds in ``source`` to the archive ``target``.

    Raises:
        TrunklineError: the importer yields nothing, and no file is kept.
    """
    with tempfile.TemporaryDirectory(prefix=".convert-", dir=target.parent) as folder:
        conversion = _Conversion(importer, source, Path(folder))
        conversion.convert_all()
        if not conversion.files:
            raise TrunklineError(f"There is nothing to bring in from {source.name} ({importer.title}).")
        manifest = ArchiveManifest(
            version=trunkline.__version__,
            system=importer.name,
            files=len(conversion.files),
            conversations=conversion.conversations,
            sources=dict(sorted(conversion.sources.items())),
            gaps=tuple(conversion.gaps),
            created=datetime.now(UTC),
        )
        with write_archive(target, 0) as out:
            _write(out, manifest, conversion.files)


class _Conversion:
    """Collects the files for memory in a folder, and records which files were left out and why."""

    def __init__(self, importer: Importer, source: Source, folder: Path) -> None:
        self._importer = importer
        self._source = source
        self._folder = folder
        self.files: dict[str, Path] = {}
        self.sources: dict[str, str] = {}
        self.gaps: list[ImportGap] = []
        self.conversations = 0

    def convert_all(self) -> None:
        """Collect the items that the importer yields, then the files that it did not read."""
        for item in self._importer.read(self._source):
            self._add_item(item)
        for path in self._source.paths:
            if path not in self._source.used:
                self._add_unused_file(path)
        self.gaps += self._source.troubles

    def _add_item(self, item: Imported) -> None:
        match item:
            case ImportGap():
                self.gaps.append(item)
            case ImportedConversation():
                self._add_conversation(item)
            case ImportedFile(path=path, data=data, source=source):
                is_schedule = (
                    schedule_of(path) is not None
                )  # it is named by its task, such as "refresh-token"
                if not is_schedule and (_is_secret_name(source) or _is_secret_name(path)):
                    self.gaps.append(_secret_gap(source, "its name says that it holds keys"))
                else:
                    self._add_file(path, data, source)

    def _add_conversation(self, conversation: ImportedConversation) -> None:
        block = conversation.block or self._source.block
        messages = [message for message in conversation.messages if message.content or message.tool_calls]
        if not messages:
            return
        made = conversation.created_at or messages[0].created_at
        header = {
            "id": _stable_id(conversation.id),
            "block": block,
            "title": conversation.title,
            "created_at": made,
        }
        lines = [msgspec.json.encode(header), *map(msgspec.json.encode, messages)]
        path = f"{block_folder(block)}/conversations/{header['id']}.jsonl"
        self.conversations += 1
        self._add_file(path, b"".join(line + b"\n" for line in lines), conversation.source)

    def _add_unused_file(self, path: str) -> None:
        """Keep a file that the importer did not read, if the file is text without keys."""
        system = self._importer.name
        if _is_secret_name(path):
            self.gaps.append(_secret_gap(path, "its name says that it holds keys"))
            return
        if self._source.file(path).stat().st_size > MAX_UNUSED_FILE_BYTES:
            self.gaps.append(ImportGap(what=path, why="it is large, and its format is unknown"))
            return
        data = self._source.data(path)
        if not data.strip():
            return
        if not _is_text(data):
            self.gaps.append(ImportGap(what=path, why="it is not text, and its format is unknown"))
        elif (why := _find_secret(data)) is not None:
            self.gaps.append(_secret_gap(path, why))
        elif self._add_file(f"imported/{system}/{path}", data, path):
            kept = f"nothing here has a place for it; it is kept as imported/{system}/{path}"
            self.gaps.append(ImportGap(what=path, why=kept))

    def _add_file(self, path: str, data: bytes, source: str) -> bool:
        names = PurePosixPath(path).parts
        if path in self.files or not _is_allowed_path(names):
            why = (
                "two files would have the same name" if path in self.files else "its name is not allowed here"
            )
            self.gaps.append(ImportGap(what=source, why=why))
            return False
        file = self._folder / hashlib.sha256(path.encode()).hexdigest()
        file.write_bytes(data)
        self.files[path] = file
        self.sources[path] = source
        return True


def _write(out: ArchiveWriter, manifest: ArchiveManifest, files: dict[str, Path]) -> None:
    out.add(MANIFEST, manifest.encode())
    for path, file in sorted(files.items()):
        out.add_file(f"{MEMORY}/{path}", file)


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _stable_id(name: str) -> str:
    """Return a conversation id that memory accepts. The same name always gets the same id, so a second import adds
    nothing.
    """
    return name if _CONVERSATION_ID.fullmatch(name) else hashlib.sha256(name.encode()).hexdigest()[:32]


def _is_allowed_path(names: Sequence[str]) -> bool:
    """Report whether memory accepts a path. Memory repeats the check when it reads the archive."""
    return all(
        name not in ("", ".", "..")
        and not name.startswith((".git", "~"))
        and "\\" not in name
        and len(name.encode("utf-8", "replace")) <= 255
        and name.isprintable()
        for name in names
    )


def _is_secret_name(path: str) -> bool:
    """Report whether a file's name is typical of files that hold keys or passwords."""
    name = PurePosixPath(path).name.casefold()
    if name.endswith((".md", ".txt", ".jsonl")):
        return False
    return (
        name.endswith(tuple(PROTECTED_NAMES)) or _SECRET_NAME.fullmatch(PurePosixPath(name).stem) is not None
    )


def _find_secret(data: bytes) -> str | None:
    """Return why a text is left out, without quoting the text; None if nothing in the text looks like a key."""
    text = data.decode("utf-8", "replace")
    return None if Redactor().redact(text) == text else "it holds what looks like a key or a password"


def _secret_gap(what: str, why: str) -> ImportGap:
    return ImportGap(
        what=what, why=f"{why}, so it was left behind", hint="Set keys by reference in trunkline.toml."
    )
