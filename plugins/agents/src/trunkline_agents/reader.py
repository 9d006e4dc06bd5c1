"""The types of agents that a block sees: those of its own folder ``agent-types/``, and those at the root of memory.

Of two with one name the block's own counts.
"""

from trunkline import Memory, ToolError
from trunkline_agents.agent_type import AgentType, AgentTypeIssue, parse_agent_type

TYPE_FOLDERS = ("/agent-types", "agent-types")
"""Everybody's, then the block's own; the paths are as ``Memory`` has them."""

MAX_TYPES = 100
"""Largest number of types that are read of one folder."""

TypesByName = dict[str, AgentType | AgentTypeIssue]


async def read_agent_types(memory: Memory) -> TypesByName:
    """Return all types and problems by name, in the order of their names."""
    found: TypesByName = {}
    for folder in TYPE_FOLDERS:
        for path in await _paths(memory, folder):
            name = path.rpartition("/")[2].removesuffix(".md")
            found[name] = await _read(memory, name, path)
    return dict(sorted(found.items()))


async def _paths(memory: Memory, folder: str) -> list[str]:
    try:
        entries = await memory.list(folder)
    except ToolError:  # there is no such folder, or this block may not read it
        return []
    return sorted(one.path for one in entries if one.kind == "file" and one.path.endswith(".md"))[:MAX_TYPES]


async def _read(memory: Memory, name: str, path: str) -> AgentType | AgentTypeIssue:
    try:
        return parse_agent_type(name, path, (await memory.read(path)).content)
    except ToolError as error:
        return AgentTypeIssue(name, path, f"it cannot be read: {error}")
