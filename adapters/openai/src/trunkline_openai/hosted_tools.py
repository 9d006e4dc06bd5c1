"""Tools that OpenAI runs: what requests ask for, and how the calls in an answer are shown. No I/O in here."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from trunkline import ToolCall
from trunkline.api.model import CallIds, ToolRan, parse_arguments

CALL_SUFFIX = "_call"
CALL_TYPES = (
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
)
"""The types of items of hosted tools that a model called."""

INCLUDES = {
    "web_search": "web_search_call.action.sources",
    "file_search": "file_search_call.results",
    "code_interpreter": "code_interpreter_call.outputs",
}
"""What a request must ask for, so that an answer contains the output of a hosted tool."""


def included_outputs(tools: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the entries of ``include`` for these hosted tools."""
    kinds = [str(tool.get("type")) for tool in tools]
    return [field for kind, field in INCLUDES.items() if any(one.startswith(kind) for one in kinds)]


def tool_ran(item: Mapping[str, Any], ids: CallIds) -> ToolRan:
    """Return the event of an item of a hosted tool."""
    kind = str(item.get("type"))
    name, arguments, output = _shown(kind, item)
    failed = item.get("status") == "failed" or bool(item.get("error"))
    call = ToolCall(id=ids.unique(str(item.get("id") or "")), name=name, arguments=arguments)
    return ToolRan(call=call, output=output, error=failed)


def _shown(kind: str, item: Mapping[str, Any]) -> tuple[str, dict[str, Any], str]:
    """Return the name, the arguments and the output of a call."""
    name = kind.removesuffix(CALL_SUFFIX)
    match kind:
        case "web_search_call":
            action = _object(item.get("action"))
            sources = _objects(action.pop("sources", None))
            return name, action, "\n".join(str(source.get("url", "")) for source in sources)
        case "file_search_call":
            found = [f"{one.get('filename')}: {one.get('text')}" for one in _objects(item.get("results"))]
            return name, {"queries": item.get("queries") or []}, "\n\n".join(found)
        case "code_interpreter_call":
            outputs = [str(one.get("logs") or one.get("url") or "") for one in _objects(item.get("outputs"))]
            return name, {"code": item.get("code") or ""}, "\n".join(outputs)
        case "image_generation_call":
            return name, {"prompt": item.get("revised_prompt") or ""}, _image(item)
        case _:
            output = str(item.get("error") or item.get("output") or "")
            return str(item.get("name") or name), parse_arguments(_text(item.get("arguments"))), output


def _image(item: Mapping[str, Any]) -> str:
    """Describe an image: its base64 text would fill the context of the next request."""
    size = len(str(item.get("result") or "")) * 3 // 4
    return f"an image ({item.get('output_format') or 'png'}, about {size} bytes)" if size else ""


def _object(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {})
