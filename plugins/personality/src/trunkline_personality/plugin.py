"""The plugin: its context source, its tools, and what turns a person's phrases into calls of them."""

from collections.abc import Iterable

import trunkline


@trunkline.hookimpl
def trunkline_context_sources() -> Iterable[trunkline.ContextSource]:
    """Identity files, curated memory, personality and sliders (C22, C23)."""
    from trunkline_personality.guide import Guide

    return [Guide()]


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """Curated memory, who the agent and the owner are (MB-F18), and what was chosen."""
    from trunkline_personality import choosing, identity, remembering

    return [
        remembering.memory,
        remembering.block_memory,
        identity.update_monitor_identity,
        identity.update_founder_info,
        choosing.personality_set,
    ]


@trunkline.hookimpl
def trunkline_model_middleware() -> Iterable[trunkline.ModelMiddleware]:
    """What makes "Set humor to 80%" a call in every channel."""
    from trunkline_personality.commanding import Commands

    return [Commands()]
