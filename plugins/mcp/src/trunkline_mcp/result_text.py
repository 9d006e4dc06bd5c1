"""Convert a server's result to the text that a model receives: limited in length, and marked as data."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trunkline.api.text import wrap_context

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

LARGEST = 4 * 1024 * 1024
"""Characters of a result; what is beyond is left out, and said to be."""


def fenced_text(result: "CallToolResult", source: str) -> str:
    """All parts of a result that can be read, one after the other, in a block that says whose words they are."""
    return wrap_context(source, plain_text(result))


def plain_text(result: "CallToolResult") -> str:
    """The same without the block."""
    parts = [*_parts(result)]
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False, indent=1)]
    text = "\n".join(parts) or "(nothing)"
    if len(text) > LARGEST:
        text = f"{text[:LARGEST]}\n[{len(text) - LARGEST} characters more were left out]"
    return text


def _parts(result: "CallToolResult") -> Iterator[str]:
    for block in result.content:
        yield _part(block)


def _part(block: "ContentBlock") -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type} of {block.mime_type}, {_size(block.data)}; it cannot be shown here]"
        case "resource_link":
            return f"[resource {block.uri}: {block.title or block.name}]"
        case "resource":
            held = block.resource
            text = getattr(held, "text", None)
            if text is not None:
                return f"[resource {held.uri}]\n{text}"
            return f"[resource {held.uri}, {_size(getattr(held, 'blob', ''))}; it cannot be shown here]"
    return f"[{block.type}; it cannot be shown here]"


def _size(base64: str) -> str:
    return f"{len(base64) * 3 // 4} bytes"
