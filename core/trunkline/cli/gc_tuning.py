"""The settings of Python's garbage collector, for start-up and for long-running processes."""

import gc

THRESHOLDS = (10_000, 10, 20)
"""New objects before a collection of the youngest generation, then collections before a collection of the next
generation. Python's defaults are 700, 10 and 10."""


def raise_gc_thresholds() -> None:
    """Make collections less frequent. Call this function before the imports: they create 160 000 permanent objects,
    and with Python's default thresholds the collector takes a twelfth of the processor time of a start.
    """
    gc.set_threshold(*THRESHOLDS)


def freeze_started_objects() -> None:
    """Exclude the objects that exist now from every later collection. Call it once, when a worker is ready.

    Without it, the collector took an eighth of a busy process's time, and each full collection stopped the process for
    tenths of a second.
    """
    gc.collect()
    gc.freeze()
