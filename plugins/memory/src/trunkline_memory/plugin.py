"""The plugin: declares its tools and nothing else."""

from collections.abc import Iterable

import trunkline


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """The memory tools (PA-F8, PA-F9) and those of chunks (RLM-F9 to F12, F27)."""
    from trunkline_memory import carrying, changing, gardening, looking, remembering

    return [
        looking.memory_read,
        looking.memory_search,
        looking.memory_list,
        looking.memory_history,
        looking.memory_blame,
        changing.memory_write,
        changing.memory_edit,
        changing.memory_delete,
        changing.memory_revert,
        carrying.memory_export,
        carrying.memory_import,
        remembering.remember,
        remembering.recall,
        remembering.reason,
        remembering.forget,
        remembering.link,
        gardening.crowded_topics,
        gardening.consolidate,
    ]
