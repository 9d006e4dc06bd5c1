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
    """``memory``, ``block_memory`` and ``personality_set``."""
    from trunkline_personality import choosing, remembering

    return [remembering.memory, remembering.block_memory, choosing.personality_set]


@trunkline.hookimpl
def trunkline_model_middleware() -> Iterable[trunkline.ModelMiddleware]:
    """What makes "Set humor to 80%" a call in every channel."""
    from trunkline_personality.commanding import Commands

    return [Commands()]
