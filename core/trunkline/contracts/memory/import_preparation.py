"""Whatever a person wants to bring in, made into an archive that memory understands.

An export of Trunkline is one already; its folder is packed again. Anything else is unpacked aside, an importer is
found for it, and what it yields becomes an archive without a history. What no importer places is kept under
``imported/<system>/``. Runs where the person is: memory itself reads one form and no other.
"""

import hashlib
import re
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import msgspec

import trunkline
from trunkline._util.archives.manifest import MANIFEST, MEMORY, ArchiveManifest, ImportGap
from trunkline._util.archives.reader import read_manifest
from trunkline._util.archives.writer import ArchiveWriter, write_archive
from trunkline._util.paths import PROTECTED_NAMES
from trunkline._util.private_folders import make_private
from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.memory.archive_extraction import extract_archive
from trunkline.contracts.memory.importer import Imported, ImportedConversation, ImportedFile, Importer, Source
from trunkline.errors import StorageError, TrunklineError

OTHERS = frozenset({".git", ".hg", "node_modules", "__pycache__", ".venv", "venv", ".cache", ".obsidian"})
"""Folders that hold nothing that anybody wrote down to remember."""

HISTORY = (
    "refs/heads/**/*",
    "refs/tags/**/*",
    "objects/[0-9a-f][0-9a-f]/*",
    "objects/pack/*.pack",
    "objects/pack/*.idx",
)
"""What of a repository is its history."""

LARGEST_REST = 4 * 1024 * 1024
MOST_FILES = 200_000
BLOCK = "main"

_SECRET_NAME = re.compile(
    r"(auth|credentials?|secrets?|tokens?|oauth|keys?|apikeys?|\.env)([-_.].*)?|.*[-_.](token|secret|key|pem)",
    re.I,
)
_NAME = re.compile(
    r"(auth|credentials?|secrets?|tokens?|oauth|keys?|apikeys?|\.env)([-_.].*)?|.*[-_.](token|secret|key|pem)",
    re.I,
)
_SECRET_TEXT = re.compile(
    r"\b(sk|pk|rk|xox[abprs]|ghp|gho|github_pat|glpat|mblk)[-_][A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|(?i:(?:api[-_]?key|secret|password|bot[-_]?token|access[-_]?token)[\"']?\s*[:=]\s*[\"']?[^\s\"'$<{*.]{8,})"
)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@contextmanager
def prepare_import(
    source: Path,
    importers: Sequence[Importer],
    scratch: Path,
    *,
    kind: str | None = None,
    block: str | None = None,
) -> Iterator[Path]:
    """An archive of ``source`` for as long as the block lasts.

    ``kind`` names an importer, else each is asked whether it recognises the source. ``block`` is where conversations
    go that belong to none.

    Raises:
        TrunklineError: nobody recognises it, or it is broken.
        StorageError: it is not there, or cannot be read.
    """
    if not source.exists():
        raise StorageError(f"There is no file or folder {source}.", hint="Check the spelling.")
    make_private(scratch)
    with tempfile.TemporaryDirectory(prefix=".bring-", dir=scratch) as folder:
        try:
            ready = _prepare(source, importers, Path(folder), kind, block or BLOCK)
        except OSError as error:
            reason = (error.strerror or "storage failed").lower()
            raise StorageError(f"{source} cannot be read, or not be unpacked: {reason}.") from error
        yield ready


def _prepare(
    source: Path, importers: Sequence[Importer], scratch: Path, kind: str | None, block: str
) -> Path:
    target = scratch / "archive.tar"
    if source.is_file():
        if kind is None and read_manifest(source) is not None:
            return source
        folder = scratch / "unpacked"
        make_private(folder)
        extract_archive(source, folder)
    else:
        folder = source
    if kind is None and (root := _own_folder(folder)) is not None:
        _pack_own(root, target)
        return target
    found = Source(folder, _files(folder), source.stem if source.is_file() else source.resolve().name, block)
    importer = _choose(importers, found, kind, source)
    _convert(importer, found, target)
    return target


def _choose(importers: Sequence[Importer], source: Source, kind: str | None, path: Path) -> Importer:
    names = ", ".join(sorted(importer.name for importer in importers)) or "none is installed"
    if kind is not None:
        chosen = [importer for importer in importers if importer.name == kind]
        if not chosen:
            raise TrunklineError(f"Nothing here imports from {kind!r}.", hint=f"Known are: {names}.")
        return chosen[0]
    for importer in importers:
        if importer.recognises(source):
            return importer
    raise TrunklineError(
        f"{path} is not recognised as a memory of any system.",
        hint=f"Name the system with --from ({names}), or bring plain files with: trunkline memory add",
    )


def _files(folder: Path) -> Iterator[str]:
    """The plain files below a folder; no links are followed."""
    root = folder.resolve()
    waiting, count = [root], 0
    while waiting:
        for entry in sorted(waiting.pop().iterdir()):
            mode = entry.lstat().st_mode
            if stat.S_ISDIR(mode) and entry.name not in OTHERS:
                waiting.append(entry)
            elif stat.S_ISREG(mode):
                count += 1
                if count > MOST_FILES:
                    raise TrunklineError(
                        f"{folder} holds more than {MOST_FILES} files.", hint="Name a folder in it."
                    )
                yield entry.relative_to(root).as_posix()


# A folder of our own -------------------------------------------------------------------------------------------


def _own_folder(folder: Path) -> Path | None:
    """The memory in an unpacked export, or a memory root."""
    for root in (folder / MEMORY, folder):
        if (root / ".git" / "HEAD").is_file() and (
            (root / "AGENT.md").is_file() or (root / "blocks").is_dir()
        ):
            return root
    return None


def _pack_own(root: Path, target: Path) -> None:
    """Its history as it is. What of its repository is not history stays behind: configuration, hooks, locks."""
    git = root / ".git"
    if (git / "objects" / "info" / "alternates").exists() or (git / "shallow").exists():
        raise TrunklineError(
            f"The history in {git} is not whole: parts of it lie elsewhere.",
            hint="Make a full clone of it first.",
        )
    with write_archive(target, 0) as out:
        out.add(MANIFEST, ArchiveManifest(version=trunkline.__version__, head=_head(git)).encode())
        for file in (git / "HEAD", git / "packed-refs"):
            if file.is_file() and not file.is_symlink():
                out.add_file(f"{MEMORY}/.git/{file.name}", file)
        for pattern in HISTORY:
            for file in sorted(git.glob(pattern)):
                name = file.relative_to(git).as_posix()
                if (
                    stat.S_ISREG(file.lstat().st_mode)
                    and not name.endswith(".lock")
                    and "tmp_obj" not in name
                ):
                    out.add_file(f"{MEMORY}/.git/{name}", file)


def _head(git: Path) -> str:
    """The commit that HEAD names; "" when that cannot be told."""
    text = (git / "HEAD").read_text("utf-8", "replace").strip()
    name = text.removeprefix("ref: ")
    loose = git / name
    if re.fullmatch(r"refs/heads/[\w./-]+", name) and ".." not in name and loose.is_file():
        return loose.read_text("utf-8", "replace").strip()
    packed = git / "packed-refs"
    lines = packed.read_text("utf-8", "replace").splitlines() if packed.is_file() else []
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), "")


# What an importer yields -----------------------------------------------------------------------------------------


class _Conversion:
    """Writes what an importer yields, and what it left."""

    def __init__(self, importer: Importer, source: Source, folder: Path) -> None:
        self._importer = importer
        self._source = source
        self._folder = folder
        self.files: dict[str, Path] = {}
        self.sources: dict[str, str] = {}
        self.gaps: list[ImportGap] = []
        self.conversations = 0

    def take_all(self) -> None:
        for item in self._importer.read(self._source):
            self._take(item)
        for path in self._source.paths:
            if path not in self._source.used:
                self._rest(path)
        self.gaps += self._source.troubles

    def _take(self, item: Imported) -> None:
        match item:
            case ImportGap():
                self.gaps.append(item)
            case ImportedConversation():
                self._conversation(item)
            case ImportedFile(path=path, data=data, source=source):
                if is_secret_name(source) or is_secret_name(path):
                    self.gaps.append(_secret(source, "its name says that it holds keys"))
                else:
                    self._keep(path, data, source)

    def _conversation(self, talk: ImportedConversation) -> None:
        block = talk.block or self._source.block
        messages = [message for message in talk.messages if message.content or message.tool_calls]
        if not messages:
            return
        made = talk.created_at or messages[0].created_at
        header = {"id": stable_id(talk.id), "block": block, "title": talk.title, "created_at": made}
        lines = [msgspec.json.encode(header), *map(msgspec.json.encode, messages)]
        path = f"blocks/{block}/conversations/{header['id']}.jsonl"
        self.conversations += 1
        self._keep(path, b"".join(line + b"\n" for line in lines), talk.source)

    def _rest(self, path: str) -> None:
        """A file that nobody placed."""
        system = self._importer.name
        if is_secret_name(path):
            self.gaps.append(_secret(path, "its name says that it holds keys"))
            return
        if self._source.file(path).stat().st_size > LARGEST_REST:
            self.gaps.append(ImportGap(what=path, why="it is large, and nothing here knows its form"))
            return
        data = self._source.data(path)
        if not data.strip():
            return
        if not _is_text(data):
            self.gaps.append(ImportGap(what=path, why="it is no text, and nothing here knows its form"))
        elif (why := find_secret(data)) is not None:
            self.gaps.append(_secret(path, why))
        elif self._keep(f"imported/{system}/{path}", data, path):
            kept = f"nothing here has a place for it; it is kept as imported/{system}/{path}"
            self.gaps.append(ImportGap(what=path, why=kept))

    def _keep(self, path: str, data: bytes, source: str) -> bool:
        names = PurePosixPath(path).parts
        if path in self.files or not is_plain(names):
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


def _convert(importer: Importer, source: Source, target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".convert-", dir=target.parent) as folder:
        conversion = _Conversion(importer, source, Path(folder))
        conversion.take_all()
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


def _write(out: ArchiveWriter, manifest: ArchiveManifest, files: dict[str, Path]) -> None:
    out.add(MANIFEST, manifest.encode())
    for path, file in sorted(files.items()):
        out.add_file(f"{MEMORY}/{path}", file)


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False


def stable_id(name: str) -> str:
    """An id that memory allows, always the same for the same name."""
    return name if _NAME.fullmatch(name) else hashlib.sha256(name.encode()).hexdigest()[:32]


def is_plain(names: Sequence[str]) -> bool:
    """Whether a path may be one of memory's; memory itself looks again."""
    return all(
        name not in ("", ".", "..")
        and not name.startswith((".git", "~"))
        and "\\" not in name
        and len(name.encode("utf-8", "replace")) <= 255
        and name.isprintable()
        for name in names
    )


def is_secret_name(path: str) -> bool:
    """Whether a file is called as those are that hold keys and passwords."""
    name = PurePosixPath(path).name.casefold()
    if name.endswith((".md", ".txt", ".jsonl")):
        return False
    return (
        name.endswith(tuple(PROTECTED_NAMES)) or _SECRET_NAME.fullmatch(PurePosixPath(name).stem) is not None
    )


def find_secret(data: bytes) -> str | None:
    """Why a text may not come in, in words that do not repeat it; None when nothing in it looks like a key."""
    text = data.decode("utf-8", "replace")
    return None if Redactor().redact(text) == text else "it holds what looks like a key or a password"


def _secret(what: str, why: str) -> ImportGap:
    return ImportGap(
        what=what, why=f"{why}, so it was left behind", hint="Set keys by reference in trunkline.toml."
    )
