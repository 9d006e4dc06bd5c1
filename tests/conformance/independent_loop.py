"""An agent loop that is not Trunkline's: a separate program with the standard library alone (ARCH-2, FS-7).

``python independent_loop.py MODEL_URL`` prints its address. It answers ``POST /engine/chat`` (PA-F31): it asks the
model by Chat Completions, runs its own tool ``count_words``, and continues until the model is done. It prints every
request that it receives as a line.
"""

import json
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOL = {
    "type": "function",
    "function": {
        "name": "count_words",
        "description": "Count the words of a text.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
}


def reported(message: dict[str, Any]) -> dict[str, Any]:
    """A message of the contract as Chat Completions has it."""
    given = {"role": message["role"], "content": message["content"]}
    if "tool_call_id" in message:
        given["tool_call_id"] = message["tool_call_id"]
    if message.get("tool_calls"):
        given["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
            }
            for call in message["tool_calls"]
        ]
    return given


def asked(messages: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the reply of the model."""
    body = json.dumps({"model": "any", "messages": messages, "tools": [TOOL]}).encode()
    request = urllib.request.Request(
        f"{sys.argv[1]}/chat/completions", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        answer = json.load(response)
    return answer["choices"][0]["message"], answer["usage"]


class Loop(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        sys.stdout.write(body.decode() + "\n")
        sys.stdout.flush()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self._run([reported(one) for one in json.loads(body)["messages"]])

    def _run(self, messages: list[dict[str, Any]]) -> None:
        used = {"prompt_tokens": 0, "completion_tokens": 0}
        while True:
            message, usage = asked(messages)
            used = {name: used[name] + usage[name] for name in used}
            if message.get("content"):
                self._send("text-delta", {"content": message["content"]})
            messages.append(message)
            if not message.get("tool_calls"):
                self._send("done", {"finish_reason": "stop", "usage": used})
                return
            for call in message["tool_calls"]:
                arguments = json.loads(call["function"]["arguments"])
                self._send(
                    "tool-call", {"id": call["id"], "name": call["function"]["name"], "arguments": arguments}
                )
                output = str(len(arguments["text"].split()))
                self._send("tool-result", {"id": call["id"], "output": output})
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})

    def _send(self, event: str, data: dict[str, Any]) -> None:
        self.wfile.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())

    def log_message(self, *_: object) -> None:
        return


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Loop)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
