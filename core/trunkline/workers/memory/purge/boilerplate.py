"""The program's own words: files that memory begins with, what tools say of themselves, marks, fixed sentences of
plugins. They stand in many places, and no text is recognised by them. Pure.
"""

from collections.abc import Iterable

from trunkline._util.untrusted_text import DATA, OWNER, fenced
from trunkline.contracts.memory.initial_files import SEED, block_files
from trunkline.contracts.tools.messages import ToolSpec
from trunkline.workers.memory.purge.text_match import lines_of

_MARKS = b" #>*+-|`.,:!0123456789"
"""What stands around a line where it is listed or quoted."""


def own_words(texts: Iterable[str], tools: Iterable[ToolSpec]) -> frozenset[bytes]:
    """The lines of what the program itself writes: ``texts`` of plugins, what ``tools`` say, the seed."""
    data = [*SEED.values(), *(text.encode() for text in block_files("main", None, None).values())]
    data += [text.encode() for text in (*texts, *(fenced("", "", note=note) for note in (DATA, OWNER)))]
    data += [text.encode() for tool in tools for text in (tool.description, *_said_of(tool))]
    return frozenset(_bare(line) for one in data for line in lines_of(one)) - {b""}


def others(lines: frozenset[bytes], own: frozenset[bytes]) -> frozenset[bytes]:
    """The lines that are somebody's, without those that are the program's own, listed or quoted."""
    return frozenset(
        line for line in lines if _bare(line) not in own and _bare(line.partition(b": ")[2]) not in own
    )


def _bare(line: bytes) -> bytes:
    return line.strip(_MARKS)


def _said_of(tool: ToolSpec) -> Iterable[str]:
    """What a tool says of its parameters."""
    for schema in tool.parameters.get("properties", {}).values():
        if isinstance(schema, dict) and isinstance(schema.get("description"), str):
            yield schema["description"]
