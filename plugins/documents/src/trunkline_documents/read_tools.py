"""Looking into documents: ``read_document``, ``search_in_documents``, ``list_documents``. Changes nothing."""

import re
from typing import Annotated, Any

from msgspec import Meta

from trunkline import BlockPath, ToolContext, ToolError, tool
from trunkline_documents.token_budget import MAX_PROMPT_TOKENS, estimate_tokens

_MARK = re.compile(r"^<!-- page (\d+) -->$", re.MULTILINE)

Page = Annotated[int, Meta(ge=1)]
Best = Annotated[int, Meta(ge=1, le=50)]


@tool(effect="read", timeout=180.0, untrusted_output=True)
async def read_document(
    context: ToolContext, path: BlockPath, first_page: Page = 1, last_page: Page | None = None
) -> str:
    """Read a document of the workspace (PDF, DOCX, XLSX, PPTX, EPUB, HTML, text) as text, or some of its pages.

    Args:
        path: The file, relative to the workspace.
        first_page: The first page or slide to read.
        last_page: The last one; all without it.
    """
    document = await context.documents.read(path)
    text = document.text
    if document.pages is not None:
        text = _pages(text, first_page, last_page or document.pages)
    if estimate_tokens(text) > MAX_PROMPT_TOKENS:
        pages = f" Or read some of its {document.pages} pages." if document.pages else ""
        raise ToolError(
            f"{path!r} has about {estimate_tokens(text)} tokens there, more than {MAX_PROMPT_TOKENS} at once. "
            f"Use ingest_document, then search_in_documents.{pages}",
            kind="too_large",
        )
    return text


def _pages(text: str, first: int, last: int) -> str:
    """Return the text from the first to the last page, including the page marks."""
    found = [(int(mark[1]), mark.start()) for mark in _MARK.finditer(text)]
    starts = [start for page, start in found if page >= first]
    ends = [start for page, start in found if page > last]
    if not starts or last < first:
        raise ToolError(f"There is no page {first} to {last}.", kind="not_found")
    return text[starts[0] : ends[0] if ends else len(text)]


@tool(effect="read", untrusted_output=True)
async def search_in_documents(context: ToolContext, query: str, top_k: Best = 8) -> str:
    """Search the documents of this conversation, of this block and of all blocks, best first. Quote with the citation.

    Args:
        query: What to look for.
        top_k: How many places at most.
    """
    found = await context.documents.search(query, limit=top_k)
    if any(one.path for one in found):
        context.derived()
    places = [f"[{one.citation}]{f' in {one.path}' if one.path else ''}\n{one.text}" for one in found]
    return "\n\n".join(places) or "Nothing was found."


@tool(effect="read", untrusted_output=True, derived=True)
async def list_documents(context: ToolContext) -> list[dict[str, Any]]:
    """List the documents that search_in_documents searches."""
    own = [
        {"name": one.name, "size": one.size, "kept": "with this conversation"}
        for one in await context.documents.collected()
    ]
    return own + [
        one for folder in ("documents", "/documents") for one in await _stored_documents(context, folder)
    ]


async def _stored_documents(context: ToolContext, folder: str) -> list[dict[str, Any]]:
    try:
        entries = await context.memory.list(folder, recursive=True)
    except ToolError:  # there is no such folder yet
        return []
    return [
        {"name": entry.path, "size": entry.size, "kept": "in memory"}
        for entry in entries
        if entry.kind == "file"
    ]
