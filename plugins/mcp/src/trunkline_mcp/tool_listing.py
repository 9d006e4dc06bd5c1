"""Reads a page of tools: unreadable tools are skipped and reported, the others stay.

The SDK takes a page as a whole or not at all, so that one wrong definition would keep all of a server's tools away. It
has no public way around that. What it keeps to itself is used in here and nowhere else, and only for such a page.
"""

from typing import TYPE_CHECKING, Any

import anyio.lowlevel

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import ListToolsResult


async def list_tools_page(
    client: "Client", cursor: str | None, most: int
) -> "tuple[ListToolsResult, list[str]]":
    """A page, and a sentence for each tool of it that cannot be read. Where there are such, no more than ``most`` are
    looked at. Raises as the SDK does for anything else."""
    from pydantic import ValidationError

    try:
        return await client.list_tools(cursor=cursor), []
    except ValidationError:
        return await _readable_tools(client, cursor, most)


async def _readable_tools(
    client: "Client", cursor: str | None, most: int
) -> "tuple[ListToolsResult, list[str]]":
    from mcp_types import ListToolsResult

    raw = await _raw_page(client, cursor)
    raw.pop("_meta", None)
    listed = raw.pop("tools", ())
    tools, left_out = [], []
    if len(listed) > most:
        left_out.append(f"of {len(listed)} tools on a page only {most} are read")
    for one in listed[:most]:
        await anyio.lowlevel.checkpoint()  # others have their turn between two tools
        why = _parse_error({**raw, "tools": [one]}, client.protocol_version)
        if why:
            left_out.append(f"{_tool_label(one)} is left out: {why}")
        else:
            tools.append(one)
    page = ListToolsResult.model_validate({**raw, "tools": tools}, by_name=False)
    whole = cursor is None and page.next_cursor is None
    return client.session._absorb_tool_listing(page, complete=whole), left_out


async def _raw_page(client: "Client", cursor: str | None) -> dict[str, Any]:
    from mcp_types import ListToolsRequest, PaginatedRequestParams

    params = PaginatedRequestParams(cursor=cursor) if cursor is not None else None
    request = ListToolsRequest(params=params).model_dump(by_alias=True, mode="json", exclude_none=True)
    options: Any = {}
    client.session._stamp(request, options)
    return dict(
        await client.session._dispatcher.send_raw_request(request["method"], request.get("params"), options)
    )


def _parse_error(page: dict[str, Any], version: str) -> str:
    """Return why a page with only this tool cannot be parsed; "" when it can."""
    from mcp_types import ListToolsResult
    from mcp_types.methods import validate_server_result
    from pydantic import ValidationError

    try:
        validate_server_result("tools/list", version, page)
        ListToolsResult.model_validate(page, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"][2:])) or "definition"
        return f"its {where} cannot be read ({first['msg'][:200]})"
    return ""


def _tool_label(one: object) -> str:
    name = one.get("name") if isinstance(one, dict) else None
    return repr(name[:80]) if isinstance(name, str) and name else "a tool without a name"
