"""Keeping documents and throwing them away: ``ingest_document``, ``clear_documents``."""

import re
from typing import Any

from trunkline import BlockPath, ToolContext, tool
from trunkline.api.documents import DocumentText
from trunkline.api.text import wrap_context
from trunkline_documents.token_budget import MAX_PROMPT_TOKENS, estimate_tokens

MOST_HEADINGS = 60
_HEADING = re.compile(r"^#{1,6} .+$", re.MULTILINE)


@tool(effect="write", timeout=180.0)
async def ingest_document(context: ToolContext, path: BlockPath, remember: bool = False) -> dict[str, Any]:
    """Store a document of the workspace for search_in_documents: with this conversation, or in memory.

    A short document is returned whole; of a long one, the headings are returned and the text is found by searching.

    Args:
        path: The file, relative to the workspace.
        remember: Store it in memory, for every conversation of this block; otherwise it is deleted with this one.
    """
    document = await context.documents.read(path)
    name = path.strip("/").rpartition("/")[0]
    name = f"{name}/{document.name}" if name else document.name
    if remember:
        await context.memory.write(f"documents/{name}", document.text)
        context.derived()
    else:
        await context.documents.collect(name, document.text)
    kept = "in memory" if remember else "with this conversation"
    return {"name": name, "kept": kept, "pages": document.pages, **_format_document(name, document)}


def _format_document(name: str, document: DocumentText) -> dict[str, Any]:
    """The text where it is short, else what stands in it."""
    length = estimate_tokens(document.text)
    if length <= MAX_PROMPT_TOKENS:
        return {"text": wrap_context(name, document.text)}
    headings = _HEADING.findall(document.text)
    return {
        "tokens": length,
        "headings": wrap_context(name, "\n".join(headings[:MOST_HEADINGS])),
        "next": "It is too long to be read at once. Use search_in_documents.",
    }


@tool(effect="write")
async def clear_documents(context: ToolContext) -> dict[str, Any]:
    """Delete the documents that are stored with this conversation. Documents in memory stay."""
    return {"cleared": await context.documents.clear()}
