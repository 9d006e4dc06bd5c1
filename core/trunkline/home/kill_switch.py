"""The kill switch that ``trunkline panic`` engages. While its file is in the home, no program starts and no model is
called.

The switch is a file, so that it stays engaged when processes end, and works without a bus. Only the existence of the
file counts; its content is for people. If the file cannot be checked, the switch counts as engaged.
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
"""Seconds between two checks by a worker. Every program must end within two seconds."""

RELEASE_COMMAND = "trunkline panic --release"

STOPPED_SENTENCE = (
    f"Everything was stopped by panic. Nothing starts until a person releases it: {RELEASE_COMMAND}"
)


@dataclass(frozen=True, slots=True)
class PanicRecord:
    """The time (UTC, ISO 8601) when the switch was engaged, and who engaged it."""

    at: str = ""
    by: str = ""


class KillSwitch:
    """The kill switch of a ``home``.

    Guarantees: the switch stays engaged until it is released, also after a restart of the machine. If its file cannot
    be checked, it counts as engaged.

    Not guaranteed: that programs which already run have ended when ``engage`` returns.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self._file = home / FILE_NAME

    @property
    def is_engaged(self) -> bool:
        """Report whether the switch is engaged. Raises nothing."""
        try:
            os.lstat(self._file)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return True

    def read(self) -> PanicRecord | None:
        """Return who engaged the switch, and when; None if the switch is not engaged. The record is empty if it cannot
        be read. Raises nothing.
        """
        if not self.is_engaged:
            return None
        with suppress(OSError, ValueError, TypeError):
            return PanicRecord(**json.loads(self._file.read_text()))
        return PanicRecord()

    def engage(self, by: str) -> None:
        """Engage the switch until it is released. If it is engaged already, the record keeps naming who engaged it
        first.

        Raises:
            StorageError: the file cannot be written, so the switch is not engaged and programs may start.
        """
        content = json.dumps(asdict(PanicRecord(datetime.now(UTC).isoformat(timespec="seconds"), by)))
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(handle, "w") as file:
                    file.write(content)
        except OSError as error:
            raise StorageError(
                f"The kill switch {self._file} cannot be written: {error.strerror}.",
                hint='Programs were ended, but new ones may start: stop the platform ("trunkline up") itself.',
            ) from error

    def release(self) -> bool:
        """Release the switch, and report whether it was engaged.

        Raises:
            StorageError: the file cannot be removed, so the switch stays engaged.
        """
        try:
            self._file.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageError(
                f"The kill switch {self._file} cannot be removed: {error.strerror}.",
                hint="Remove it by hand.",
            ) from error
        return True

    def raise_if_engaged(self) -> None:
        """Do nothing if the switch is released. Raises ToolError ``permission_denied`` if it is engaged."""
        if self.is_engaged:
            raise ToolError(f"{STOPPED_SENTENCE}. Nothing was run.", kind="permission_denied")

    async def wait_until(self, engaged: bool) -> None:
        """Wait until the switch is engaged (``engaged`` True) or released (False). A change is noticed within 0.2
        seconds. Raises nothing.
        """
        while self.is_engaged is not engaged:  # noqa: ASYNC110  other processes change the file
            await anyio.sleep(POLL_SECONDS)
