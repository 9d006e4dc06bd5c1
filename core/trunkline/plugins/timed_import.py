"""Imports a plugin with a time limit, in a thread, so that an import that never returns does not block the worker."""

import threading
from collections.abc import Callable

from trunkline._util.interruptible import InterruptibleCall
from trunkline.errors import PluginError, TrunklineError

ENDING = 0.5
"""Seconds that an import has to end after it was asked to."""


class ImportTimeout(PluginError):
    """An import exceeded its time limit. Its thread was asked to end; if it does not end, it is abandoned."""


class ImportFailed(Exception):
    """An import raised ``error``, of any type. A person's Ctrl-C does not reach the thread of the import."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def import_within(seconds: float, load: Callable[[], object]) -> object:
    """Call ``load`` with a time limit, and return its result.

    Raises:
        ImportTimeout: ``load`` took longer than ``seconds``.
        TrunklineError: ``load`` raised it.
        ImportFailed: ``load`` raised any other exception.
    """
    job = _ImportJob(load)
    thread = threading.Thread(target=job.run, name="trunkline-import", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        job.strand.interrupt()
        thread.join(ENDING)
        raise ImportTimeout(
            f"Its import took longer than {seconds:g} s.",
            hint="Fix the plugin (import large modules inside functions), or raise [plugins] import_timeout.",
        )
    if isinstance(job.error, TrunklineError):
        raise job.error
    if job.error is not None:
        raise ImportFailed(job.error) from job.error
    return job.result


class _ImportJob:
    def __init__(self, load: Callable[[], object]) -> None:
        self.strand = InterruptibleCall()
        self.result: object = None
        self.error: BaseException | None = None
        self._load = load

    def run(self) -> None:
        try:
            self.result = self.strand.run(self._load)
        except BaseException as error:
            self.error = error
