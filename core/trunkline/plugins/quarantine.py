"""Quarantine: plugins that crashed their worker repeatedly, and are not loaded until the owner releases them.

A crashed process leaves two files: its crash report (``runtime/watchdog.py``), which names the code that ended it, and
its activity log (``activity_log.py``), which names the plugins whose code was running. An activity alone is no
evidence: a process that was killed from outside leaves an activity log too, and no crash report. A plugin is
quarantined when crash reports name its code in the thread that ended the process, or when processes end without a crash
report while they import it, because then no worker could start. The list is ``quarantine.json`` in the home.
"""

import fcntl
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from trunkline._util.json_file import read_json
from trunkline._util.regular_file import read_regular
from trunkline._util.toml import SettingsFileError
from trunkline.config import Config
from trunkline.errors import PluginError
from trunkline.plugins import activity_log
from trunkline.plugins.activity_log import LONG_LIVED_KINDS, Activity, ActivityLogHeader
from trunkline.plugins.discovery import bundled_distributions, find_candidates, normal_name

log = logging.getLogger(__name__)

WINDOW = timedelta(hours=1)
"""Only crashes within this time are counted together."""

FILE = "quarantine.json"
SILENT_DEATH = "the process ended at once without a word, as by a kill"
EXIT_MESSAGE = "the process was ended by os._exit"

_CURRENT = re.compile(r"^Current thread.*?$(.*?)(?=^Thread|\Z)", re.MULTILINE | re.DOTALL)
"""The section of a crash report about the thread that ended the process."""


class Suspect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plugin that was active when a process crashed. ``named``: the crash report of the process shows the plugin's
    code.
    """

    owner: str
    doing: str
    at: int
    named: bool = False


class Crash(msgspec.Struct, frozen=True, kw_only=True):
    """A process that crashed while plugins were active. ``how`` is the end of the sentence "crashed: ..."."""

    time: datetime
    worker: str
    how: str
    suspects: tuple[Suspect, ...]


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin that is not loaded. The entry applies to one version; a new version is loaded again."""

    owner: str
    version: str
    reason: str
    since: datetime


class QuarantineRegister(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of ``quarantine.json``."""

    crashes: tuple[Crash, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()

    def find(self, owner: str, version: str) -> Quarantined | None:
        """Return the entry of this version of a plugin, or None."""
        return next((q for q in self.quarantined if (q.owner, q.version) == (owner, version)), None)


class Quarantine:
    """The quarantine of a home. ``limit`` is the number of crashes after which a plugin is put into quarantine; with
    0 no plugin is.
    """

    def __init__(self, home: Path, limit: int) -> None:
        self._file = home / FILE
        self._folder = activity_log.activity_log_folder(home)
        self._limit = limit

    def update(self, versions: dict[str, str]) -> QuarantineRegister:
        """Evaluate the crashed processes and return the register. ``versions`` are the versions of the installed
        plugins, by owner.
        """
        if not self._folder.is_dir():
            return self.read()
        with self._locked_register() as register:
            fresh = tuple(self._crashes(versions))
            if not fresh:
                return register
            since = datetime.now(UTC) - WINDOW
            known = tuple(crash for crash in register.crashes if crash.time > since)
            register = msgspec.structs.replace(register, crashes=(*known, *fresh))
            for crash in fresh:
                _log_crash(crash)
                register = self._quarantine_worst(register, crash, versions)
            self._write(register)
            return register

    def add(self, owner: str, version: str, reason: str) -> None:
        """Put a plugin into quarantine immediately. Does nothing if ``limit`` is 0 or the home has no ``run`` folder.
        A failure to write is logged.
        """
        if self._limit and self._folder.parent.is_dir():
            with self._locked_register() as register:
                self._write(_with_entry(register, owner, version, reason))

    def release(self, owners: Iterable[str]) -> tuple[str, ...]:
        """Release plugins and delete their crashes. Return the owners that were in quarantine."""
        given = set(owners)
        with self._locked_register() as register:
            out = tuple(q.owner for q in register.quarantined if q.owner in given)
            kept = tuple(q for q in register.quarantined if q.owner not in given)
            crashes = tuple(c for c in register.crashes if not given & {s.owner for s in c.suspects})
            self._write(QuarantineRegister(crashes=crashes, quarantined=kept))
        return out

    # Evaluation ------------------------------------------------------------------------------------------------

    def _crashes(self, owners: Iterable[str]) -> Iterator[Crash]:
        """Yield one crash for each crashed process, however many workers it ran."""
        dead: dict[tuple[int, str], list[tuple[ActivityLogHeader, tuple[Activity, ...]]]] = {}
        for head, found in activity_log.read_crashed(self._folder):
            dead.setdefault((head.pid, head.boot), []).append((head, found))
        for (pid, boot), left in dead.items():
            words = self._last_words(pid)
            together = tuple(activity for _, some in left for activity in some)
            asked = any(head.leaving for head, _ in left)
            if boot == activity_log.boot_id() and (together or words) and not asked and self._limit:
                yield _crash(left[0][0], len(left), together, words, owners)

    def _last_words(self, pid: int) -> str:
        path = last_words_path(self._folder, pid)
        try:
            words = path.read_text(errors="replace")
            path.unlink()
        except OSError:
            return ""
        return words

    def _quarantine_worst(
        self, register: QuarantineRegister, last: Crash, versions: dict[str, str]
    ) -> QuarantineRegister:
        """Put the plugin that best explains the crashes into quarantine, if it was suspect often enough."""
        rows = []
        for suspect in filter(_is_accused, last.suspects):
            seen = [
                s for c in register.crashes for s in c.suspects if s.owner == suspect.owner and _is_accused(s)
            ]
            ours = (
                suspect.owner.partition(":")[0] in bundled_distributions()
            )  # a bundled plugin needs a crash report that names it
            if (suspect.named or not ours) and len(seen) >= self._limit and suspect.owner in versions:
                rows.append((suspect.named, len(seen), suspect.at, suspect))
        if not rows:
            return register
        *_, worst = max(rows, key=lambda row: row[:3])
        count = sum(s.owner == worst.owner and _is_accused(s) for c in register.crashes for s in c.suspects)
        reason = f"It was at work ({worst.doing}) when its worker crashed, {count} times; the last time {last.how}."
        crashes = tuple(c for c in register.crashes if worst.owner not in {s.owner for s in c.suspects})
        register = msgspec.structs.replace(register, crashes=crashes)
        log.error("plugin %s is put into quarantine. %s", worst.owner, reason)
        return _with_entry(register, worst.owner, versions[worst.owner], reason)

    # The file --------------------------------------------------------------------------------------------------

    @contextmanager
    def _locked_register(self) -> Iterator[QuarantineRegister]:
        """Read the register under a lock between processes. When the lock file cannot be created, read it without a
        lock.
        """
        try:
            lock = os.open(
                self._folder.parent / "quarantine.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError:
            yield self.read()
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self.read()
        finally:
            os.close(lock)

    def read(self) -> QuarantineRegister:
        """Return the current register.

        Raises:
            PluginError: the file cannot be read, so it is unknown which plugins are in quarantine.
        """
        try:
            return read_json(str(self._file), read_regular(self._file), QuarantineRegister)
        except FileNotFoundError:
            return QuarantineRegister()
        except (OSError, SettingsFileError) as error:
            raise PluginError(
                f"Which plugins are in quarantine is not known: {error}",
                hint=f"Repair {self._file}. Deleting it releases all plugins from quarantine.",
            ) from error

    def _write(self, register: QuarantineRegister) -> None:
        draft = self._file.with_suffix(f".{os.getpid()}")
        try:
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(register), indent=2))
            draft.replace(self._file)
        except OSError as error:
            log.error("%s cannot be written: %s", self._file, error)


def release_from_quarantine(config: Config, name: str) -> tuple[str, ...]:
    """Release the plugin called ``name`` (entry point or distribution). Return the owners that were in quarantine."""
    wanted = {normal_name(name)}
    known = [
        one.owner for one in find_candidates((), config.settings.runtime.tool_sources) if one.is_named([name])
    ]
    quarantine = Quarantine(config.home, config.settings.plugins.max_crashes)
    gone = [q.owner for q in quarantine.read().quarantined if normal_name(q.owner) in wanted]
    return quarantine.release([*known, *gone])


def last_words_path(folder: Path, pid: int) -> Path:
    """Return the file in which a process writes its crash report when it can."""
    return folder / f"{pid}.fault"


def _crash(
    head: ActivityLogHeader, workers: int, activities: Sequence[Activity], words: str, owners: Iterable[str]
) -> Crash:
    passing = [activity for activity in activities if activity.doing not in LONG_LIVED_KINDS] or activities
    latest = {activity.owner: activity for activity in sorted(passing, key=lambda activity: activity.at)}
    suspects = [
        Suspect(
            owner=activity.owner,
            doing=activity.doing,
            at=activity.at,
            named=_names_plugin(words, activity.owner),
        )
        for activity in latest.values()
    ]
    others = (owner for owner in owners if owner not in latest and _names_plugin(words, owner))
    suspects += [Suspect(owner=owner, doing="in a thread of its own", at=0, named=True) for owner in others]
    how = _describe_death(head, words)
    worker = head.worker if workers == 1 else "whole platform, in place of one"
    return Crash(time=datetime.now(UTC), worker=worker, how=how, suspects=tuple(suspects))


def _is_accused(suspect: Suspect) -> bool:
    """Report whether there is evidence against a plugin. Activity alone is none."""
    return suspect.named or suspect.doing == "import"


def _names_plugin(words: str, owner: str) -> bool:
    """Report whether the thread that ended the process ran the plugin's code. Other plugins may have been active in
    other threads.
    """
    first = words.partition("\n")[0]
    if not first.startswith("Timeout"):  # a timer thread reports a stall, so any thread may be its cause
        words = "".join(_CURRENT.findall(words))
    module = owner.rpartition(":")[2].replace("-", "_")
    return f"/{module}/" in words or f"/{module}.py" in words


def _describe_death(head: ActivityLogHeader, words: str) -> str:
    first = words.strip().partition("\n")[0]
    if first.startswith("Timeout"):
        return f"it held the whole worker up for longer than the watchdog allows {first[8:].strip('!')}"
    if first:
        return first.removeprefix("Fatal Python error: ").lower()
    if activity_log.oom_kills() > head.memory_kills:
        return f"{SILENT_DEATH}; the system killed something for want of memory meanwhile"
    return SILENT_DEATH


def _log_crash(crash: Crash) -> None:
    """Log a crash. A process that was killed from outside also had active plugins, so activity alone is only a
    warning.
    """
    passing = [suspect for suspect in crash.suspects if suspect.doing not in LONG_LIVED_KINDS]
    named = ", ".join(f"{suspect.owner} ({suspect.doing})" for suspect in passing) or "no plugin's call"
    if any(map(_is_accused, crash.suspects)):
        log.error("the %s worker crashed: %s; at work: %s", crash.worker, crash.how, named)
    else:
        text = "the %s worker did not end in order: %s; at work: %s. That is no evidence against a plugin"
        log.warning(text, crash.worker, crash.how, named)


def _with_entry(register: QuarantineRegister, owner: str, version: str, reason: str) -> QuarantineRegister:
    entry = Quarantined(owner=owner, version=version, reason=reason, since=datetime.now(UTC))
    others = tuple(q for q in register.quarantined if q.owner != owner)
    return msgspec.structs.replace(register, quarantined=(*others, entry))
