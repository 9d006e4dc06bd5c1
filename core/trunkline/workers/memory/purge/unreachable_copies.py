"""The copies that a purge cannot reach, because they are outside of memory and of the server. A purge reports them with
place and time.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from trunkline.contracts.memory.purge import RemainingCopy
from trunkline.contracts.retention import Retention
from trunkline.home.paths import Home

ALWAYS_UNREACHABLE = (
    RemainingCopy(
        where="backups, exports and clones",
        what="Copies that were made before still have it. Delete them yourself.",
    ),
    RemainingCopy(
        where="model providers, channels, clients and trace collectors",
        what="What was sent to them is theirs to keep. Ask them to delete it.",
    ),
    RemainingCopy(
        where="audit/ in memory",
        what="Ids, tools, decisions and times of the calls stay, without their content, and the note of this purge: "
        "its target, its paths and its reason.",
    ),
    RemainingCopy(
        where="commit messages",
        what="Those made outside of the conversation stay as they are: they name paths.",
    ),
)


def unreachable_copies(home: Home, retention: Retention, now: datetime) -> Iterator[RemainingCopy]:
    """Yield the places that may hold copies and that exist."""
    if _has_files(home.logs):
        days = timedelta(days=retention.log_days)
        yield RemainingCopy(
            where=str(home.logs), what="Logs may quote it in errors. Delete them yourself.", until=now + days
        )
    if _has_files(home.workspaces):
        what = (
            "Files that tools and programs wrote are no memory, and were not looked at. Delete them yourself."
        )
        yield RemainingCopy(where=str(home.workspaces), what=what)
    if _has_files(home.path / "tasks"):
        what = "What background tasks were given and printed was not looked at. Delete it yourself."
        yield RemainingCopy(where=str(home.path / "tasks"), what=what)
    if _has_files(home.remotes):
        days = timedelta(days=retention.journal_days)
        yield RemainingCopy(
            where="other hosts",
            what="Their ledger and audit log have the calls that they ran.",
            until=now + days,
        )
    for folder in sorted((*home.path.glob("replaced-*"), *home.path.glob("before-*"))):
        yield RemainingCopy(where=str(folder), what="A home of before has it still. Delete it yourself.")
    damaged = home.memory / ".git" / "trunkline" / "damaged"
    if _has_files(damaged):
        yield RemainingCopy(
            where=str(damaged), what="What was found broken was put aside here. Delete it yourself."
        )
    yield from ALWAYS_UNREACHABLE


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
