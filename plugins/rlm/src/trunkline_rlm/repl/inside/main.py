"""The program of a session's process: shuts itself in, says so, then runs what the host sends. Begun by
``process.py`` as ``python -I -S -B main.py <parent> <memory> <cpu seconds> <output> <filter> <function>...``."""

import os
import sys


def main() -> None:
    """Serve until the host goes away."""
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    sys.path.insert(0, os.path.normpath(f"{folder}/../../.."))
    from trunkline_rlm.repl.inside import pipes
    from trunkline_rlm.repl.inside.interpreter import Interpreter
    from trunkline_rlm.repl.inside.lockdown import CannotLock, lock

    parent, memory, cpu, output = map(int, sys.argv[1:5])
    code, functions = bytes.fromhex(sys.argv[5]), sys.argv[6:]
    interpreter = Interpreter(functions, output)
    sys.path.clear()
    sys.argv.clear()
    try:
        apart = lock(parent, memory, cpu, code)
    except CannotLock as reason:
        pipes.send("refused", str(reason))
        return
    pipes.send("ready", apart)
    while True:
        _, code, variables, checked = pipes.receive()
        interpreter.run(code, variables, checked=checked)


main()
