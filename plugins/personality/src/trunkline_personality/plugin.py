"""The plugin: its context source, its tools, and what turns a person's phrases into calls of them."""

from collections.abc import Iterable

import trunkline
from trunkline.api.model import ModelMiddleware


@trunkline.hookimpl
def trunkline_context_sources() -> Iterable[trunkline.ContextSource]:
    """Identity files, curated memory, personality and sliders."""
    from trunkline_personality.context_source import PersonalityContext

    return [PersonalityContext()]


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """Curated memory, who the agent and the owner are, and what was chosen."""
    from trunkline_personality import identity, memory_tools, personality_tool

    return [
        memory_tools.memory,
        memory_tools.block_memory,
        identity.update_monitor_identity,
        identity.update_founder_info,
        personality_tool.personality_set,
    ]


@trunkline.hookimpl
def trunkline_model_middleware() -> Iterable[ModelMiddleware]:
    """Yield the middleware that turns "Set humor to 80%" into a tool call in every channel."""
    from trunkline_personality.phrase_middleware import PhraseMiddleware

    return [PhraseMiddleware()]
