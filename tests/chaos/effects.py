"""The outside world that tools act on: a file to which every effect appends its own number."""

from collections import Counter
from pathlib import Path

PLUGIN = '''
"""Tools whose effect is outside: they append to a file, slowly. Before one of them a person is asked."""
import os
import time
import trunkline
from trunkline.contracts.tools.messages import ToolOutcome

def leave(file: str, mark: str) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, f"{mark}\\n".encode())
    finally:
        os.close(handle)

@trunkline.tool(effect="write")
def transfer(file: str, mark: str, before: float = 0.0, after: float = 0.0) -> str:
    """Move money: appends to a file."""
    time.sleep(before)
    leave(file, mark)
    time.sleep(after)
    return f"moved {mark}"

@trunkline.tool(effect="write")
def pay(file: str, mark: str, before: float = 0.0, after: float = 0.0) -> str:
    """Pay, once a person has said yes: appends to a file."""
    time.sleep(before)
    leave(file, mark)
    time.sleep(after)
    return f"paid {mark}"

@trunkline.tool(effect="read")
def look(mark: str, seconds: float = 0.0) -> str:
    """Look, slowly."""
    time.sleep(seconds)
    return f"seen {mark}"

@trunkline.hookimpl
def trunkline_tools():
    return [transfer, pay, look]

class AskFirst:
    """Wants a person's yes for each payment."""

    stage = "gate"

    async def __call__(self, invocation, proceed):
        if invocation.spec.name != "pay" or invocation.approved == invocation.call_hash:
            return await proceed(invocation)
        return ToolOutcome(
            call=invocation.context.call, status="approval", call_hash=invocation.call_hash, question="Pay?"
        )

@trunkline.hookimpl
def trunkline_tool_middleware():
    return [AskFirst()]
'''


def happened(file: Path) -> Counter[str]:
    """Return the number of times that each effect happened."""
    return Counter(file.read_text().split() if file.exists() else ())
