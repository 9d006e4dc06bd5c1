"""MB-F3: every setting of a memoryblock block is imported, or refused with what to do instead."""

import tomllib
from typing import Any

import msgspec
import pytest

from trunkline.contracts.blocks.messages import BlockConfig

pytestmark = pytest.mark.anyio

CONFIG = {
    "name": "garden",
    "description": "Grows",
    "adapter": {
        "provider": "openai",
        "model": "gpt",
        "region": "eu-west-1",
        "maxTokens": 9,
        "cacheControl": True,
    },
    "goals": ["peas"],
    "tools": {"enabled": ["read_file"], "searchProvider": "x", "sandbox": False, "workingDir": "/srv"},
    "channel": {"type": "telegram", "telegram": {"chatId": "7"}},
    "memory": {"maxContextTokens": 5, "thresholdPercent": 60},
    "pulse": {"intervalSeconds": 9},
    "permissions": {"scope": "system", "allowShell": True, "allowNetwork": False, "maxTimeout": 5},
    "monitorName": "Fern",
    "monitorEmoji": "🌱",
    "enabled": False,
}
"""Every setting, each with another value than memoryblock's default."""

IMPORTED = {
    "description": "Grows",
    "goals": ["peas"],
    "monitor_name": "Fern",
    "monitor_emoji": "🌱",
    "enabled": False,
}
TABLES = ("adapter", "tools", "channel", "memory", "pulse", "permissions")


def keys(table: dict[str, Any], prefix: str) -> list[str]:
    """Return the dotted names of the values of a table."""
    found = []
    for name, value in table.items():
        found += keys(value, f"{prefix}{name}.") if isinstance(value, dict) else [f"{prefix}{name}"]
    return found


async def test_MB_F3_each_setting_is_imported_or_refused(place: Any, write: Any) -> None:
    """What the block's file has is a setting of blocks here. Each other one is named, with what to do instead."""
    write("blocks/garden/monitor.md", "Fern")
    done = await place.bring(write("blocks/garden/config.json", CONFIG))
    table = tomllib.loads(await place.text("blocks/garden/block.toml"))
    assert table == IMPORTED and msgspec.convert(table, BlockConfig).enabled is False
    refused = {
        gap.why.partition(" ")[0]: gap.hint for gap in done.gaps if gap.why.endswith("was not imported")
    }
    rest = {name: CONFIG[name] for name in TABLES}
    assert sorted(refused) == sorted(keys(rest, "")) and all(refused.values())


async def test_the_defaults_of_memoryblock_are_not_reported(place: Any, write: Any) -> None:
    """A block as memoryblock makes it has nothing that the owner must set again."""
    defaults = {
        "adapter": {"provider": "bedrock", "model": "", "region": "us-east-1", "maxTokens": 4096},
        "permissions": {"scope": "block", "allowShell": False, "allowNetwork": True, "maxTimeout": 120_000},
        "enabled": True,
    }
    write("blocks/garden/monitor.md", "Fern")
    done = await place.bring(write("blocks/garden/config.json", defaults))
    assert not [gap for gap in done.gaps if "garden" in gap.what]
    assert "enabled" not in await place.text("blocks/garden/block.toml")
