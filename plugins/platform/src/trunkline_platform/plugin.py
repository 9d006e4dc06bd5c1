"""The plugin: declares its tools and nothing else."""

from collections.abc import Iterable

import trunkline


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """Ask the owner, and know where and when one is."""
    from trunkline_platform import info_tools, person_tools, usage_tool

    return [
        person_tools.ask_human,
        person_tools.send_channel_message,
        info_tools.get_current_time,
        info_tools.system_info,
        info_tools.list_blocks,
        usage_tool.get_token_usage,
    ]
