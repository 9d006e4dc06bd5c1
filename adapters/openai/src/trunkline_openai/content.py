"""Parts of messages and tools that both protocols need. No I/O in here."""

import base64
from typing import Any

from trunkline import Image
from trunkline.api.model import DocumentFile
from trunkline.api.tool import ToolSchema


def data_url(file: Image | DocumentFile) -> str:
    """The file as an address that holds it."""
    return f"data:{file.media_type};base64,{base64.b64encode(file.data).decode()}"


def tool_parameters(tool: ToolSchema) -> dict[str, Any]:
    """The tool's JSON schema; a tool without parameters needs an empty one."""
    return tool.parameters or {"type": "object", "properties": {}}
