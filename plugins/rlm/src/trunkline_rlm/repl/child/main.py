"""The program of a session's process in the sandbox: hears what it is to be, shuts itself in, says so, then runs what
the host sends. Begun by ``process.py`` as ``python -I -S -B main.py``."""

import os
import sys


def main() -> None:
    """Serve until the host goes away."""
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    sys.path.insert(0, os.path.normpath(f"{folder}/../../.."))
    from trunkline_rlm.repl.child import host_pipes
    from trunkline_rlm.repl.child.interpreter import Interpreter
    from trunkline_rlm.repl.child.lockdown import LockdownError, lock

    _, memory, cpu, output, functions, filters = host_pipes.receive()
    interpreter = Interpreter(functions, output)
    sys.path.clear()
    sys.argv.clear()
    try:
        lock(memory, cpu, filters)
    except LockdownError as reason:
        host_pipes.send("refused", str(reason))
        return
    host_pipes.send("ready")
    while True:
        _, code, variables, checked = host_pipes.receive()
        interpreter.run(code, variables, checked=checked)


main()
