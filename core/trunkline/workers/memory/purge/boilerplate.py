"""The program's own words: files that memory begins with, what tools say of themselves, marks, fixed sentences of
plugins. They stand in many places, and no text is recognised by them. Pure.
"""

from collections.abc import Iterable

from trunkline._util.untrusted_text import DATA_NOTE, OWNER_NOTE, wrap_context
from trunkline.contracts.memory.initial_files import INITIAL_FILES, block_files
from trunkline.contracts.memory.text_match import significant_lines, strip_marks
from trunkline.contracts.tools.messages import ToolSpec


def boilerplate_lines(texts: Iterable[str], tools: Iterable[ToolSpec]) -> frozenset[bytes]:
    """The lines of what the program itself writes: ``texts`` of plugins, what ``tools`` say, the seed."""
    data = [*INITIAL_FILES.values(), *(text.encode() for text in block_files("main", None, None).values())]
    data += [
        text.encode()
        for text in (*texts, *(wrap_context("", "", note=note) for note in (DATA_NOTE, OWNER_NOTE)))
    ]
    data += [text.encode() for tool in tools for text in (tool.description, *_parameter_texts(tool))]
    return frozenset(strip_marks(line) for one in data for line in significant_lines(one)) - {b""}


def _parameter_texts(tool: ToolSpec) -> Iterable[str]:
    """Yield the descriptions of a tool's parameters."""
    for schema in tool.parameters.get("properties", {}).values():
        if isinstance(schema, dict) and isinstance(schema.get("description"), str):
            yield schema["description"]
