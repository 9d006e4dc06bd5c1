"""``discover_tools`` and ``load_tools``: how a model finds and loads tools that are not in its prompt. They change no
permission.
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from trunkline.contracts.tools.function_tool import tool
from trunkline.contracts.tools.messages import DISCOVER_TOOLS, LOAD_TOOLS, ToolSpec
from trunkline.contracts.tools.tool import CanonicalCall, Tool, ToolContext
from trunkline.errors import ToolError
from trunkline.workers.tools.discovery import ToolAvailability, ToolDiscovery

MOST_SHOWN = 20
"""Largest number of tools in a search result."""

LONGEST_LIST = 12_000
"""Largest number of characters of a list of all tools, and of the restricted ones."""

LONGEST_SENTENCE = 200

Names = Annotated[list[str], Meta(min_length=1, max_length=50)]


def discovery_tools(discovery: ToolDiscovery) -> tuple[Tool, Tool]:
    """Return ``discover_tools`` and ``load_tools``."""

    @tool(effect="read")
    async def discover_tools(context: ToolContext, query: str = "") -> str:
        """Find tools by what they do. There are more than you see: look before you say that you cannot.

        Args:
            query: What you want to do, in a few words; without it all tools are listed.
        """
        specs = await discovery.search(context, query)
        shown = specs[:MOST_SHOWN] if query.strip() else specs
        if not shown:
            return f"No tool has to do with {query!r}. Try other words, or none to have all listed."
        tools, more = await discovery.availability(context, shown), len(specs) - len(shown)
        return _listing(context.block, await discovery.permissions_summary(context), tools, more)

    @discover_tools.alias
    def list_tools_available(query: str = "") -> CanonicalCall:
        """List the tools that there are."""
        return CanonicalCall(DISCOVER_TOOLS, {"query": query})

    @tool(effect="read")
    async def load_tools(context: ToolContext, names: Names) -> str:
        """Get tools that discover_tools found, to call them from now on in this conversation.

        Args:
            names: The names of the tools.
        """
        loaded, refused = list[str](), list[str]()
        for name in dict.fromkeys(names):
            why = await _refusal(discovery, context, name)
            if why:
                refused.append(why)
            else:
                loaded.append(name)
        if not loaded:
            raise ToolError("\n".join(refused), kind="not_found")
        context.load(loaded)
        return "\n".join([f"Loaded for this conversation: {', '.join(loaded)}.", *refused])

    return discover_tools, load_tools


async def _refusal(discovery: ToolDiscovery, context: ToolContext, name: str) -> str:
    """Return why the tool is not loaded; empty when it may be loaded."""
    try:
        spec = await discovery.find(context, name)
    except ToolError as error:
        return str(error).removesuffix(" Nothing was run.")
    (tools,) = await discovery.availability(context, [spec])
    return f"{name} is restricted and was not loaded: {tools.restricted}" if tools.restricted else ""


def _listing(block: str, permissions: str, tools: Sequence[ToolAvailability], more: int) -> str:
    """Return the permitted and the restricted tools as text, shortened to the size limit."""
    permitted = [one for one in tools if not one.restricted]
    barred = [one for one in tools if one.restricted]
    available, omitted = _fitting([_line(one) for one in permitted])
    restricted, omitted_restricted = _fitting(
        [f"{_line(one)} Restricted: {one.restricted}" for one in barred]
    )
    parts = [f"The block {block} may: {permissions}.", f"Available ({len(permitted)}):", *available]
    if omitted + more:
        parts.append(f"… and {omitted + more} more tools. Say in query what you want to do to find them.")
    if restricted:
        parts += [f"Restricted ({len(barred)}), which only a person can change:", *restricted]
    if omitted_restricted:
        parts.append(f"… and {omitted_restricted} more restricted tools.")
    return "\n".join([*parts, f"{LOAD_TOOLS} gives you those that you want to call."])


def _fitting(lines: Sequence[str]) -> tuple[list[str], int]:
    """Return the lines that fit, and the number of lines that do not."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > LONGEST_LIST:
            return list(lines[:number]), len(lines) - number
    return list(lines), 0


def _line(tools: ToolAvailability) -> str:
    asks = " (a person is asked first)" if tools.asks else ""
    return f"- {tools.spec.name}: {_sentence(tools.spec)}{asks}"


def _sentence(spec: ToolSpec) -> str:
    """Return the first sentence of the description in one line."""
    text = " ".join(spec.description.split())
    first = text.partition(". ")[0].removesuffix(".") + "."
    return first if len(first) <= LONGEST_SENTENCE else f"{text[:LONGEST_SENTENCE]}…"
