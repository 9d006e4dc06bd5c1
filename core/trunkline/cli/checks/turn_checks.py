"""Checks of turns: of their limits, of the tools in their requests, and of the models that they call."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trunkline._util.regular_file import read_regular
from trunkline._util.toml import read_settings
from trunkline.cli.checks.check import CheckContext, ok, warning
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.blocks.paths import block_file_path
from trunkline.contracts.blocks.preferences import PREFERENCES, Preferences
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.models.circuits import CIRCUIT_BUCKET
from trunkline.contracts.models.key_pools import KEY_POOL_BUCKET
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline.contracts.tools.messages import ListTools, ToolCatalogue
from trunkline.contracts.tools.subjects import LIST_TOOLS
from trunkline.workers.monitor.tool_selection import unknown_tool_names
from trunkline_bus import Bus, BusError

CATALOGUE_SECONDS = 3.0
"""Seconds to wait for the tools worker."""


async def turns_limits(context: CheckContext) -> HealthResult:
    """turns.limits: reports the limits of tool calls for an answer and for a turn. The number of steps has no limit
    yet."""
    settings = context.config.settings.monitor
    return ok(
        f"One answer runs at most {settings.max_tool_calls} tool calls, "
        f"{settings.parallel_tool_calls} at once; the steps of a turn have no limit, so cancel a "
        f"turn that does not end"
    )


async def tools_always_send(context: CheckContext) -> HealthResult | None:
    """tools.always_send: each name in `always_send`, in the preferences and in each `block.toml`, is the name of a
    tool."""
    if context.bus is None:
        return None
    wrong = []
    for block, file, names in _always_send(context.home.memory):
        found = await _tools(context.bus, block)
        if found is None:
            return None
        missing = unknown_tool_names(names, found.tools or (), found.own)
        wrong += [f"{file}: {', '.join(missing)}"] if missing else []
    if wrong:
        hint = "Use the names that the agent's discover_tools lists. The other tools are still sent."
        return warning(f"always_send names tools that do not exist: {'; '.join(wrong)}", hint)
    return ok("Every tool in always_send exists")


async def models_circuits(context: CheckContext) -> HealthResult | None:
    """models.circuits: no model's circuit is open."""
    if context.bus is None:
        return None
    try:
        entries = await context.bus.kv(CIRCUIT_BUCKET).entries()
    except BusError:
        return None
    circuits = [entry.value for entry in entries if entry.value is not None]
    failing = sorted(f"{one.model} ({one.fault})" for one in circuits if one.open_until is not None)
    if failing:
        hint = "The log has the reasons. The fallbacks of [plugins.failover] answer meanwhile."
        return warning(f"These models fail and their circuits are open: {', '.join(failing)}", hint)
    return ok("No model's circuit is open")


async def models_keys(context: CheckContext) -> HealthResult | None:
    """models.keys: no key of a pool rests, because its vendor refuses or limits it."""
    if context.bus is None:
        return None
    try:
        entries = await context.bus.kv(KEY_POOL_BUCKET).entries()
    except BusError:
        return None
    now, pools = utc_now().timestamp(), [entry.value for entry in entries if entry.value is not None]
    resting = [
        f"{pool.adapter} {key.digest} ({key.fault})"
        for pool in pools
        for key in pool.keys
        if key.rests_until > now
    ]
    if resting:
        hint = "The other keys are used meanwhile. The log names the variable of a key that rests."
        return warning(f"These keys rest: {', '.join(sorted(resting))}", hint)
    return ok("No key of a pool rests")


def _always_send(root: Path) -> Iterator[tuple[str, Path, tuple[str, ...]]]:
    """Return the settings of readable files, each with a block that they apply to. Other checks report unreadable
    files.
    """
    kinds: list[tuple[str, Path, type[Preferences] | type[BlockConfig]]] = [
        ("main", root / PREFERENCES, Preferences),
        *((file.parent.name, file, BlockConfig) for file in sorted(root.glob(block_file_path("*")))),
    ]
    for block, file, kind in kinds:
        with suppress(OSError, ValueError):
            always = read_settings(str(file), read_regular(file).decode("utf-8"), kind).always_send
            if always:
                yield block, file, always


async def _tools(bus: Bus, block: str) -> ToolCatalogue | None:
    """Return the block's tools; None when no tools worker answers."""
    try:
        return await bus.call(LIST_TOOLS, ListTools(block=block), timeout=CATALOGUE_SECONDS, repeatable=True)
    except BusError:
        return None
