"""The plugin: declares its importers, those that are sure of themselves first."""

from collections.abc import Iterable

import trunkline
from trunkline.api.importer import Importer


@trunkline.hookimpl
def trunkline_importers() -> Iterable[Importer]:
    """Provide one importer for each system."""
    from trunkline_importers import (
        chatgpt,
        claude,
        crevnclaw,
        hermes,
        memoryblock,
        mnemoai,
        nanobot,
        openclaw,
        rlm,
    )

    return [
        chatgpt.ChatGpt(),
        claude.Claude(),
        memoryblock.MemoryBlock(),
        crevnclaw.CrevnClaw(),
        mnemoai.MnemoAi(),
        rlm.RlmMem(),
        hermes.Hermes(),
        nanobot.Nanobot(),
        openclaw.OpenClaw(),
    ]
