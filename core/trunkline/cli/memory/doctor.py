"""``trunkline memory doctor``: checks memory for damage and repairs it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import COMMAND_SECONDS, with_memory

if TYPE_CHECKING:
    from trunkline.contracts.memory.check import MemoryFinding

EXAMPLES = """
trunkline memory doctor
trunkline memory doctor --no-repair --json
"""

CHECK_TIMEOUT = 1800.0
"""Seconds to wait for the check of memory."""

MARKS = {"ok": "ok      ", "repaired": "REPAIRED", "warning": "WARNING ", "error": "ERROR   "}


@click.command(cls=Command, examples=EXAMPLES)
@click.option(
    "--repair/--no-repair", default=True, help="Repair damage, or only report it.  [default: repair]"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(repair: bool, as_json: bool) -> int:
    """Check memory for damage, repair what can be repaired, and report it.

    The check reads every object of the history. It moves damaged objects to .git/trunkline/damaged and never deletes
    them. The command works while the platform runs (writes wait meanwhile), and also when the memory worker cannot
    start. The exit status is 1 when data is lost.
    """
    from trunkline.cli.output import print_json, print_text

    findings = _examined(repair)
    lost = any(finding.status == "error" for finding in findings)
    if as_json:
        print_json({"ok": not lost, "findings": findings})
        return 1 if lost else 0
    for finding in findings:
        print_text(f"{MARKS[finding.status]}  {finding.id:<20} {finding.summary}")
        if finding.hint:
            print_text(f"{'':30} -> {finding.hint}")
    return 1 if lost else 0


def _examined(repair: bool) -> "Sequence[MemoryFinding]":
    """Check memory in the worker that has the root, or in this process when none has."""
    from trunkline.config import load_config
    from trunkline.contracts.memory.check import CheckMemory
    from trunkline.contracts.memory.subjects import MEMORY_CHECK
    from trunkline.home.paths import Home
    from trunkline.home.run_file import running_pid
    from trunkline.plugins import Plugins
    from trunkline.workers.memory.store_selection import choose_store

    config = load_config()
    home = Home.of(config)
    if config.settings.bus.url is None and running_pid(home) is None:
        store = choose_store(Plugins.load(config), config.settings.memory.store)
        return [*store.check_root(home.memory, home.cache, repair=repair), *_started(repair)]
    request = CheckMemory(repair=repair)
    return with_memory(lambda bus: bus.call(MEMORY_CHECK, request, timeout=CHECK_TIMEOUT)).findings


def _started(repair: bool) -> "list[MemoryFinding]":
    """Report whether memory can be started now."""
    from trunkline.contracts.memory.check import MemoryFinding
    from trunkline.contracts.memory.files import ListMemory
    from trunkline.contracts.memory.subjects import MEMORY_LIST
    from trunkline.errors import TrunklineError

    if not repair:
        return []
    try:
        with_memory(lambda bus: bus.call(MEMORY_LIST, ListMemory(), timeout=COMMAND_SECONDS))
    except TrunklineError as error:
        return [MemoryFinding(id="memory.start", status="error", summary=error.sentence, hint=error.hint)]
    return [MemoryFinding(id="memory.start", status="ok", summary="Memory starts")]
