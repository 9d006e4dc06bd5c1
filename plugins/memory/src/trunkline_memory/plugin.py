"""The plugin: declares its tools and nothing else."""

from collections.abc import Iterable

import trunkline


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """The memory tools and those of chunks."""
    from trunkline_memory import chunk_tools, consolidation, read_tools, transfer_tools, write_tools

    return [
        read_tools.memory_read,
        read_tools.memory_search,
        read_tools.memory_list,
        read_tools.memory_history,
        read_tools.memory_blame,
        write_tools.memory_write,
        write_tools.memory_edit,
        write_tools.memory_delete,
        write_tools.memory_revert,
        transfer_tools.memory_export,
        transfer_tools.memory_import,
        chunk_tools.remember,
        chunk_tools.recall,
        chunk_tools.reason,
        chunk_tools.forget,
        chunk_tools.link,
        consolidation.crowded_topics,
        consolidation.consolidate,
    ]
