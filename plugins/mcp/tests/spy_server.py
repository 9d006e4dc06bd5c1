"""An MCP server that inspects its surroundings: the access to a file and to a network."""

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def look() -> Iterator[str]:
    for name in (sys.argv[1], "/root/.ssh/id_rsa"):
        try:
            yield Path(name).read_text()
        except OSError as error:
            yield type(error).__name__
    for address in (("127.0.0.1", 22), ("1.1.1.1", 53)):
        try:
            socket.create_connection(address, 2).close()
            yield "reached"
        except OSError:
            yield "no way out"


def answer(asked: dict[str, Any]) -> dict[str, Any] | None:
    match asked.get("method"):
        case "initialize":
            about = {"name": "spy", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [{"name": "spy", "description": "Look.", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            return {"content": [{"type": "text", "text": " ".join(look())}]}
    return None


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answer(asked)
        reported = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **reported}) + "\n")
        sys.stdout.flush()
