"""The latch that panic leaves: while its file lies in the home, no program is begun and no model is asked.

It is a file so that it outlives every process and holds without a bus. That it is there is what counts; what it says is
for people. When its file cannot be checked, the latch holds: whoever pulled it must be able to rely on it.
"""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio

from trunkline.errors import StorageError, ToolError

FILE_NAME = "panic.json"
POLL_SECONDS = 0.2
"""How often a worker looks whether it was pulled: every program must have ended within two seconds (CC-T12)."""

RELEASE_COMMAND = "trunkline panic --release"

STOPPED_SENTENCE = (
    f"Everything was stopped by panic. Nothing starts until a person releases it: {RELEASE_COMMAND}"
)


@dataclass(frozen=True, slots=True)
class PanicRecord:
    """Since when (UTC, ISO 8601) everything is stopped, and who stopped it."""

    at: str = ""
    by: str = ""


class KillSwitch:
    """The latch of a ``home``."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._file = home / FILE_NAME

    @property
    def is_engaged(self) -> bool:
        """Report whether everything is stopped."""
        try:
            os.lstat(self._file)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return True

    def read(self) -> PanicRecord | None:
        """Who stopped everything, and when; None when it does not hold."""
        if not self.is_engaged:
            return None
        with suppress(OSError, ValueError, TypeError):
            return PanicRecord(**json.loads(self._file.read_text()))
        return PanicRecord()

    def engage(self, by: str) -> None:
        """Stop everything until it is released. The record names the first who pulled it.

        Raises:
            StorageError: the file cannot be written, so the latch does not hold and programs may start.
        """
        said = json.dumps(asdict(PanicRecord(datetime.now(UTC).isoformat(timespec="seconds"), by)))
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(handle, "w") as file:
                    file.write(said)
        except OSError as error:
            raise StorageError(
                f"The latch {self._file} cannot be written: {error.strerror}.",
                hint='Programs were ended, but new ones may begin: stop the platform ("trunkline up") itself.',
            ) from error

    def release(self) -> bool:
        """Let everything go on. Returns whether the latch held.

        Raises:
            StorageError: the file cannot be removed, so everything stays stopped.
        """
        try:
            self._file.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageError(
                f"The latch {self._file} cannot be removed: {error.strerror}.", hint="Remove it by hand."
            ) from error
        return True

    def raise_if_engaged(self) -> None:
        """Raise ToolError while it holds."""
        if self.is_engaged:
            raise ToolError(f"{STOPPED_SENTENCE}. Nothing was run.", kind="permission_denied")

    async def wait_until(self, holds: bool) -> None:
        """Wait until it holds, or no longer does; seen after a fifth of a second at most."""
        while self.is_engaged is not holds:  # noqa: ASYNC110  other processes change the file
            await anyio.sleep(POLL_SECONDS)
