"""The tools that keep curated memory: ``memory`` for ``MEMORY.md``, ``block_memory`` for a block's ``memory.md``."""

from datetime import UTC, datetime
from typing import Any, Literal

from trunkline import ToolContext, ToolError, tool
from trunkline.api.memory import update_text
from trunkline_personality.block_memory import BlockMemoryFile
from trunkline_personality.context_files import BLOCK_MEMORY, MEMORY
from trunkline_personality.curated_memory import BUDGET, CuratedMemory


@tool(effect="write")
async def memory(
    context: ToolContext, action: Literal["add", "replace", "remove"], text: str = "", old_text: str = ""
) -> dict[str, Any]:
    """Keep the few things that must be known in every conversation, in MEMORY.md: lasting facts, preferences, rules.

    It is small, and always before you. What is long or passing belongs into files (memory_write).

    Args:
        action: add an entry; replace or remove the one that holds old_text.
        text: The entry, for add and replace: one short statement.
        old_text: A piece of the entry that is meant, for replace and remove. Only one entry may hold it.
    """
    before = CuratedMemory()

    def edit(now: str) -> str:
        nonlocal before
        before = CuratedMemory.parse(now)
        after = _edit(before, action, text, old_text)
        return now if after == before else after.text

    after = CuratedMemory.parse(await update_text(context.memory, MEMORY, edit))
    result: dict[str, Any] = {"entries": len(after.texts), "characters": len(after.text), "budget": BUDGET}
    return (
        result if after != before else {"note": "That entry already exists. Nothing was changed.", **result}
    )


def _edit(entries: CuratedMemory, action: str, text: str, old: str) -> CuratedMemory:
    match action:
        case "add":
            return entries.added(text)
        case "replace":
            return entries.replaced(old, text)
        case _:
            return entries.removed(old)


@tool(effect="write")
async def block_memory(context: ToolContext, action: Literal["note", "rewrite"], text: str) -> dict[str, Any]:
    """Keep what this block knows and is at, in its memory.md, which is before you in every conversation of the block.

    Args:
        action: note adds a dated section to its history; rewrite puts a new summary in place of the one that you see,
            which then moves into the history. Take into a new summary what still holds of the old one.
        text: The section or the summary, in Markdown.
    """
    if not text.strip():
        raise ToolError("Give the text to keep. Nothing was changed.", kind="invalid_arguments")
    at = datetime.now(UTC)

    def edit(now: str) -> str:
        book = BlockMemoryFile.parse(now, f"What {context.block} remembers")
        return (book.with_note(text, at) if action == "note" else book.with_summary(text, at)).text(at)

    new = await update_text(context.memory, BLOCK_MEMORY, edit)
    return {"path": BLOCK_MEMORY, "characters": len(new), "sections": len(BlockMemoryFile.parse(new).history)}
