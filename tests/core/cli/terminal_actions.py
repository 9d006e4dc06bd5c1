"""Actions of a person at a terminal, and calls of an agent, for tests of the command line."""

import os
import pty
import select
import subprocess
import sys
import time
from typing import Any

from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.testing.platform import Platform
from trunkline.testing.tool_calls import call_tool


async def call(running: Platform, name: str, block: str = "main", **arguments: Any) -> ToolOutcome:
    return await call_tool(running.bus, name, arguments, block=block)


def at_terminal(environ: dict[str, str], typed: str, *arguments: str) -> tuple[int, str]:
    """Run the program at a terminal of its own and type a line when it asks."""
    keys, screen = pty.openpty()
    program = [sys.executable, "-m", "trunkline.cli.main", *arguments]
    process = subprocess.Popen(
        program, env=environ, stdin=screen, stdout=screen, stderr=screen, close_fds=True
    )
    os.close(screen)
    shown, sent, deadline = "", False, time.monotonic() + 50
    while time.monotonic() < deadline:
        if select.select([keys], [], [], 0.2)[0]:
            try:
                shown += os.read(keys, 4096).decode(errors="replace")
            except OSError:
                break
        elif process.poll() is not None:
            break
        if not sent and ("Type " in shown or "[y/N]" in shown):
            os.write(keys, f"{typed}\n".encode())
            sent = True
    os.close(keys)
    return process.wait(timeout=60), shown
