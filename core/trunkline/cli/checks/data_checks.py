"""Checks of memory and of the gateway's files."""

import errno
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from trunkline.cli.checks.bus_checks import live_workers
from trunkline.cli.checks.check import CheckContext, failure, ok, warning
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline.errors import ConfigError
from trunkline.home.restore_transaction import was_interrupted
from trunkline.runtime.http.auth import SHORTEST
from trunkline.runtime.remotes.registry import RemoteRegistry

if TYPE_CHECKING:
    from pygit2 import Tree


async def home_restore(context: CheckContext) -> HealthResult:
    """home.restore: no restore was interrupted."""
    if not was_interrupted(context.home.path):
        return ok("No restore was interrupted")
    return failure(
        f"A restore into {context.home.path} was interrupted.",
        "Start Trunkline once: it puts the previous contents back.",
    )


BROKEN_CHUNKS = (
    "SELECT files.path, chunks.fault FROM chunks JOIN passages ON passages.id = chunks.passage"
    " JOIN files ON files.id = passages.file WHERE chunks.fault != '' ORDER BY files.path"
)


async def memory_history(context: CheckContext) -> HealthResult:
    """memory.history: the memory root is a git repository. Its last version can be read, and new versions can be added
    (PA-F7)."""
    root = context.home.memory
    if not (root / ".git").exists():
        return ok(f"The first start creates the history of {root}")
    import pygit2

    try:
        repository = pygit2.Repository(str(root))
        if repository.head_is_unborn:
            return ok("The history is empty so far")
        head = repository.head.peel(pygit2.Commit)
        await anyio.to_thread.run_sync(_read_folders, head.tree)
    except (pygit2.GitError, KeyError, ValueError) as error:
        return failure(
            f"The history of {root} cannot be read: {error}.",
            "Run: trunkline memory doctor. It repairs what can be repaired; restore the rest from a backup.",
        )
    shut = [folder for folder in (root / ".git", root / ".git" / "objects") if not os.access(folder, os.W_OK)]
    if shut:
        return failure(f"The history cannot be extended: you may not write to {shut[0]}.", CHMOD)
    return ok(f"The history of {root} ends at {str(head.id)[:10]}")


CHMOD = "Run: chmod -R u+rwX on that folder, as its owner. Until then, answers are kept on the bus and stored later."


def _read_folders(tree: "Tree") -> None:
    """Read all folders of a version. Raises KeyError and GitError for one that is lost."""
    import pygit2

    waiting = [tree]
    while waiting:
        waiting += [item for item in waiting.pop() if isinstance(item, pygit2.Tree)]


async def memory_files(context: CheckContext) -> HealthResult:
    """memory.files: every file of memory can be read, is small enough for history, and is fully indexed."""
    from trunkline.workers.memory.external_edits import MAX_FILE_BYTES as KEPT  # which brings pygit2 along
    from trunkline.workers.memory.index.passage import MAX_INDEXED_BYTES as SEARCHED

    root = context.home.memory
    sizes, closed = await anyio.to_thread.run_sync(_looked_through, root, SEARCHED)
    left = [path for path, size in sizes if size > KEPT]
    before = await anyio.to_thread.run_sync(_committed, root, left)
    cut = [path for path, size in sizes if size <= KEPT]
    told = (
        (
            f"Not in history, because they are larger than {KEPT >> 20} MiB",
            [p for p in left if p not in before],
        ),
        (f"In history only in a version from before they grew larger than {KEPT >> 20} MiB", before),
        (f"Only their first {SEARCHED >> 20} MiB are searched", cut),
        ("You may not open these, so their changes are not recorded in history", closed),
    )
    if not any(paths for _, paths in told):
        return ok("All files of memory can be read, are in history and are fully searched")
    hints = [
        "Split large files into smaller ones, or move them out of memory." if left or cut else "",
        "Run: chmod -R u+rwX on the files and folders that cannot be opened." if closed else "",
    ]
    said = " ".join(f"{what}: {_named(paths)}." for what, paths in told if paths)
    return warning(said, " ".join(filter(None, hints)))


def _looked_through(root: Path, than: int) -> tuple[list[tuple[str, int]], list[str]]:
    """The files of memory above a size, with their sizes in bytes; and the files and folders that cannot be opened."""
    found, closed = [], []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        closed += [
            Path(folder, name) for name in folders if not os.access(Path(folder, name), os.R_OK | os.X_OK)
        ]
        for name in names:
            with suppress(OSError):
                path = Path(folder, name)
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and status.st_size > than:
                    found.append((path.relative_to(root).as_posix(), status.st_size))
                if stat.S_ISREG(status.st_mode) and not os.access(path, os.R_OK):
                    closed.append(path)
    return sorted(found), sorted(path.relative_to(root).as_posix() for path in closed)


def _committed(root: Path, paths: list[str]) -> list[str]:
    """Those that the last commit holds; none when the commit cannot be read (memory.history reports why)."""
    import pygit2

    with suppress(pygit2.GitError, KeyError, ValueError):
        tree = pygit2.Repository(str(root)).head.peel(pygit2.Tree)
        return [path for path in paths if path in tree]
    return []


def _named(paths: list[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more


async def memory_lock(context: CheckContext) -> HealthResult:
    """memory.lock: no process but this home's memory worker has locked the memory root.

    The pid in the file is read and the lock is not tried, so that a worker that starts now is not disturbed.
    """
    holder = _holder(context.home.memory / ".git" / "trunkline" / "lock")
    if holder is None:
        return ok("The memory root is not locked")
    beats = await live_workers(context) if context.bus is not None else []
    ours = {beat.pid for beat in beats if beat.kind == "memory"}
    if holder in ours or (context.run is not None and holder == context.run.pid):
        return ok(f"This home's memory worker (pid {holder}) has locked the memory root")
    return warning(
        f"Process {holder} has locked {context.home.memory} and is not a worker of this home.",
        "Stop it before you start Trunkline, or use another memory root.",
    )


async def remotes_files(context: CheckContext) -> HealthResult | None:
    """remotes.files: each file in `remotes/` of the home is valid. While one is not, no other host can connect."""
    try:
        remotes = RemoteRegistry(context.home.remotes).all()
    except ConfigError as error:
        return failure(error.sentence, f"{error.hint} Until then no other host can connect.")
    return ok(f"{len(remotes)} other hosts may connect") if remotes else None


async def memory_purges(context: CheckContext) -> HealthResult:
    """memory.purges: `audit/purges.jsonl`, the record of purges, can be read, and every purge is complete. While a line
    of the file cannot be read, agents cannot write to memory and no archive can be imported, because purged data might
    return."""
    from trunkline.workers.memory.purge.purge_log import parse_purge_log  # which brings pygit2 along

    file = context.home.memory / "audit" / "purges.jsonl"
    try:
        notes, damaged = parse_purge_log(file.read_text("utf-8")) if file.exists() else ([], [])
    except (OSError, UnicodeDecodeError) as error:
        return failure(f"{file} cannot be read: {error}.", PURGES)
    if damaged:
        return failure(f"{file}:{damaged[0]} is not a valid record of a purge.", PURGES)
    begun = [note.target for note in notes if note.state == "begun"]
    if begun:
        return warning(
            f"A purge is incomplete: {', '.join(begun)}.", f"Run it again: trunkline memory purge {begun[0]}"
        )
    return ok(f"The records of purges can be read ({len(notes)})")


PURGES = (
    "Until this is fixed, agents cannot write to memory. Run: trunkline memory history "
    "audit/purges.jsonl, then trunkline memory revert, and restart."
)


async def memory_chunks(context: CheckContext) -> HealthResult:
    """memory.chunks: every chunk file that the search index knows is valid."""
    import apsw

    index = context.home.cache / "memory.db"
    if not index.exists():
        return ok("Chunks are checked when memory first starts")
    try:
        connection = apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READONLY)
        broken = list(connection.execute(BROKEN_CHUNKS))
        connection.close()
    except apsw.Error as error:
        return warning(f"{index} cannot be read: {error}.", "Memory rebuilds it at the next start.")
    if not broken:
        return ok("Every chunk file is valid")
    first = ", ".join(f"{path} ({code})" for path, code in broken[:3])
    return warning(
        f"{len(broken)} of the files in the folder of chunks are not valid chunks and are ignored: {first}.",
        "Correct them with an editor, or restore an earlier version: trunkline memory history, "
        "trunkline memory revert.",
    )


def _holder(lock: Path) -> int | None:
    """The pid in a lock file, if that process lives."""
    try:
        pid = int(lock.read_text(encoding="ascii").strip())
        os.kill(pid, 0)
    except PermissionError:
        return pid
    except (OSError, ValueError):
        return None
    return pid


async def gateway_port(context: CheckContext) -> HealthResult:
    """gateway.port: the port is free, or this home's gateway uses it."""
    gateway = context.config.settings.gateway
    if context.run is not None and context.run.gateway:
        return ok(f"The gateway answers at {context.run.gateway}")
    if here := await _gateways_here(context):
        return ok(f"A gateway runs on this host (pid {', '.join(map(str, here))})")
    if gateway.port == 0:
        return ok("The gateway uses any free port")
    problem = _port_problem(gateway.host, gateway.port)
    if problem is None:
        return ok(f"{gateway.host}:{gateway.port} is free")
    return failure(
        f"{gateway.host}:{gateway.port} cannot be used: {problem}.", "Set gateway.port to another port."
    )


async def _gateways_here(context: CheckContext) -> list[int]:
    """The process ids of this home's gateways on this host. Such a gateway uses the port when workers run as separate
    processes."""
    beats = await live_workers(context) if context.bus is not None else []
    return [beat.pid for beat in beats if beat.kind == "gateway" and beat.host == socket.gethostname()]


def _port_problem(host: str, port: int) -> str | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            taken = "another program uses it"
            return (
                taken if error.errno == errno.EADDRINUSE else (error.strerror or "it cannot be bound").lower()
            )
    return None


async def gateway_token(context: CheckContext) -> HealthResult:
    """gateway.token: the token file holds a token, and only its owner can read it."""
    path = context.home.token_file
    try:
        found = path.stat()
    except FileNotFoundError:
        return ok("The first start creates the token")
    if not stat.S_ISREG(found.st_mode) or found.st_size == 0:
        return failure(f"{path} holds no token.", "Delete the file; the next start creates a new token.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        return failure(f"Other users of this machine can read {path}.", f"Run: chmod 600 {path}")
    if len(path.read_text(encoding="utf-8", errors="replace").strip()) < SHORTEST:
        return failure(
            f"The token in {path} is shorter than {SHORTEST} characters, so the gateway does not start.",
            "Delete the file; the next start creates a new token.",
        )
    return ok(f"Only you can read {path}")


async def gateway_address(context: CheckContext) -> HealthResult:
    """gateway.address: the gateway listens on a loopback address only."""
    host = context.config.settings.gateway.host
    if host in ("127.0.0.1", "::1", "localhost"):
        return ok(f"The gateway listens on {host} only")
    origin = context.config.origins["gateway.host"]
    return warning(
        f"The gateway listens on {host} ({origin}), so other machines can reach it.",
        "Use 127.0.0.1, and a reverse proxy for access from other machines.",
    )
