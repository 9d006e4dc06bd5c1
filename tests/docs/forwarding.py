"""Runs the ``trunkline`` commands of a page's shell as programs of pytest's process, which forks them.

A page's commands take half a second of a processor each until they have imported Trunkline, and the pages have hundreds
of them. ``CLIENT`` is a program that hands its arguments, environment, folder and files to the test, where
``tests.support.fork_server`` forks the real program; then it exits with the status of that. With ``--no-fork-server``
the test starts a new interpreter for it.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

SOCKET = "READER_SOCKET"
"""The variable that names the forwarder's socket. A command without it is started as usual."""

CLIENT_FILE = "forward.py"
"""The client beside the socket."""

CLIENT = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect(os.environ.pop("READER_SOCKET"))
    socket.send_fds(line, [b"."], [0, 1, 2])
    line.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    line.shutdown(socket.SHUT_WR)
    status = int(line.recv(16) or b"-9")
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


class Forwarder:
    """Takes commands at a socket until it is closed, each in a thread."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()  # the path of a socket must be short
        self.address = Path(self._folder.name, "commands")
        self.address.with_name(CLIENT_FILE).write_text(CLIENT, encoding="utf-8")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self.address))
        self._socket.listen()
        self._programs: list[subprocess.Popen[bytes]] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self) -> "Forwarder":
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the programs that still run, and take no more."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._socket.close()
        for program in self._programs:
            program.kill()
        for thread in self._threads:
            thread.join()
        self._folder.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._socket.accept()
            except OSError:  # closed
                return
            thread = threading.Thread(target=self._serve, args=(line,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, line: socket.socket) -> None:
        with line, line.makefile("rb") as given:
            _, files, _, _ = socket.recv_fds(line, 1, 3)
            try:
                arguments, folder, environ = json.loads(given.read())
                program = subprocess.Popen(
                    [sys.executable, "-m", "trunkline.cli.main", *arguments],
                    stdin=files[0], stdout=files[1], stderr=files[2], cwd=folder, env=_in_own_locale(environ),
                )  # fmt: skip
            finally:
                for file in files:
                    os.close(file)
            self._programs.append(program)
            status = program.wait()
            with contextlib.suppress(OSError):  # the shell was killed
                line.sendall(str(status).encode())


def _in_own_locale(environ: dict[str, str]) -> dict[str, str]:
    """Return the environment with this process's locale, which is that of its forks. It changes no output."""
    names = ("LC_", "LANG")
    theirs = {name: value for name, value in environ.items() if not name.startswith(names)}
    return theirs | {name: value for name, value in os.environ.items() if name.startswith(names)}
