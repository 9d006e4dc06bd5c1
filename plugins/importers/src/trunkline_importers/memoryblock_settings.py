"""memoryblock's settings of a block, ``config.json``: what becomes ``block.toml``, and where the rest is set here."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from trunkline.api.importer import ImportedFile, ImportGap
from trunkline.api.memory import block_file_path
from trunkline_importers.conversion import as_list, as_mapping, to_text, toml_settings

_PERMISSIONS = (
    "Permissions of another system are not imported. Set them: trunkline permissions {block} --help"
)

NOT_IMPORTED: Mapping[str, tuple[object, str]] = MappingProxyType(
    {
        "adapter.provider": ("bedrock", 'Set model = "adapter/model" in {file}.'),
        "adapter.model": ("", 'Set model = "adapter/model" in {file}.'),
        "adapter.region": ("us-east-1", "Set region in [adapters.bedrock] of trunkline.toml."),
        "adapter.maxTokens": (4096, "Set max_tokens in the adapter's section of trunkline.toml."),
        "adapter.cacheControl": (False, "Nothing to set: the cache of a vendor that has one is always used."),
        "tools.enabled": (
            [],
            "Set tools = [...] in {file}; without it, the permissions alone limit the tools.",
        ),
        "tools.searchProvider": ("brave", "Set search in [plugins.web] of trunkline.toml."),
        "tools.sandbox": (True, "Nothing to set: programs always run in a sandbox."),
        "tools.workingDir": ("", "A block works in its folder of workspaces/. Copy the files there."),
        "channel.type": (
            "cli",
            "Set channels.enabled in trunkline.toml; a block is reached on all channels.",
        ),
        "channel.telegram.chatId": ("", "Set owners in [channels.telegram] of trunkline.toml."),
        "memory.maxContextTokens": (100_000, "In trunkline.toml, set [models] context_windows."),
        "memory.thresholdPercent": (80, "Set threshold in [plugins.compaction] of trunkline.toml."),
        "pulse.intervalSeconds": (30, "Nothing to set: each schedule is due at its own times."),
        "permissions.scope": ("block", _PERMISSIONS),
        "permissions.allowShell": (False, _PERMISSIONS),
        "permissions.allowNetwork": (True, _PERMISSIONS),
        "permissions.maxTimeout": (120_000, _PERMISSIONS),
    }
)
"""The settings that no file of the new block gets: memoryblock's default, which is not reported, and what to do here.

Models are named differently here, permissions must be a decision of the owner, and the others belong to the platform.
"""


def read_block_settings(
    config: Mapping[str, Any], block: str, path: str
) -> Iterator[ImportedFile | ImportGap]:
    """Yield the block's file, and a gap for each setting that differs from memoryblock's default and is not in it."""
    data = toml_settings(
        description=to_text(config.get("description")),
        goals=[to_text(goal) for goal in as_list(config.get("goals"))],
        monitor_name=to_text(config.get("monitorName")),
        monitor_emoji=to_text(config.get("monitorEmoji")),
        enabled=False if config.get("enabled") is False else None,
    )
    file = block_file_path(block)
    yield ImportedFile(path=file, data=data or b"# Imported.\n", source=path)
    for key, (default, hint) in NOT_IMPORTED.items():
        value = _value_at(config, key)
        if value not in (None, default):
            why = f"{key} = {to_text(value)} was not imported"
            yield ImportGap(what=path, why=why, hint=hint.format(file=file, block=block))


def _value_at(config: Mapping[str, Any], key: str) -> object:
    *tables, name = key.split(".")
    for table in tables:
        config = as_mapping(config.get(table))
    return config.get(name)
