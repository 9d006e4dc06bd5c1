"""The plugin: declares its tools and nothing else."""

from collections.abc import Iterable

import trunkline


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """Ask the owner, and know where and when one is (MB-F18)."""
    from trunkline_platform import asking, knowing, telling

    return [
        asking.ask_human,
        telling.send_channel_message,
        knowing.get_current_time,
        knowing.system_info,
        knowing.list_blocks,
    ]
