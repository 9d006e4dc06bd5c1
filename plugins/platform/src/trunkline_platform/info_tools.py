"""Tools that report the present time and this installation. They report no path, name or secret of the owner."""

import os
import platform
import shutil
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo

import trunkline
from trunkline import ToolError
from trunkline.api.files import read_toml
from trunkline.api.memory import BLOCKS_FOLDER, block_file_path
from trunkline.api.text import to_local_time


@trunkline.tool(effect="read", in_plan_mode=True)
def get_current_time(timezone: str = "") -> dict[str, str]:
    """Return the current time: local, or in a time zone, with the day of the week, and in UTC.

    Args:
        timezone: A name of the IANA database such as Europe/Berlin; the machine's own without one.
    """
    now = datetime.now(UTC)
    local = now.astimezone(_zone(timezone)) if timezone else to_local_time(now)
    return {
        "local": local.isoformat(timespec="seconds"),
        "weekday": f"{local:%A}",
        "timezone": timezone or str(local.tzname()),
        "utc": now.isoformat(timespec="seconds"),
    }


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # unknown, no name, or a folder of the database
        raise ToolError(
            f"There is no time zone {name!r}. Use a name such as Europe/Berlin or UTC.", kind="not_found"
        ) from error


@trunkline.tool(effect="read", in_plan_mode=True)
def system_info(context: trunkline.ToolContext) -> dict[str, Any]:
    """Return facts about this machine and platform: system, processors, memory, free space of the workspace,
    versions."""
    disk = shutil.disk_usage(context.workspace)
    return {
        "block": context.block,
        "trunkline": trunkline.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "processors": os.cpu_count() or 1,
        "memory_bytes": _memory(),
        "workspace_free_bytes": disk.free,
        "workspace_total_bytes": disk.total,
    }


def _memory() -> int | None:
    if sys.platform == "win32":
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@trunkline.tool(effect="read", in_plan_mode=True, derived=True)
async def list_blocks(context: trunkline.ToolContext) -> str:
    """The blocks of this installation, each with its description. You are the agent of the one that is marked."""
    entries = await context.memory.list(f"/{BLOCKS_FOLDER}")
    names = sorted(PurePosixPath(entry.path).name for entry in entries if entry.kind == "folder")
    return "\n".join([await _block_line(context, name) for name in names]) or "There are no blocks."


async def _block_line(context: trunkline.ToolContext, name: str) -> str:
    mark = " (you)" if name == context.block else ""
    try:
        table = read_toml((await context.memory.read(f"/{block_file_path(name)}")).content)
    except ToolError:  # it says nothing of itself, or a policy keeps it from this block
        return f"{name}{mark}"
    except tomllib.TOMLDecodeError:
        return f"{name}{mark}: its block.toml cannot be read"
    description = " ".join(str(table.get("description", "")).split())
    return f"{name}{mark}: {description}" if description else f"{name}{mark}"
