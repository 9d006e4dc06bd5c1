"""The outside world that tools act on: a file to which every effect appends its own number."""

from collections import Counter
from pathlib import Path

PLUGIN = '''
"""Tools whose effect is outside: they append to a file, slowly."""
import os
import time
import trunkline

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

@trunkline.tool(effect="read")
def look(mark: str, seconds: float = 0.0) -> str:
    """Look, slowly."""
    time.sleep(seconds)
    return f"seen {mark}"

@trunkline.hookimpl
def trunkline_tools():
    return [transfer, look]
'''


def happened(file: Path) -> Counter[str]:
    """How often each effect happened."""
    return Counter(file.read_text().split() if file.exists() else ())
