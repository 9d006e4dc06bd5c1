"""A program of its own: ``python -I -S guardian.py SOCKET LABEL``. Waits for the end of the process that began it,
however that comes, and has the engine remove the containers that it leaves, known by their label.

A container is a child of the engine, not of ours, so the kernel does not end it with us. This does. It imports what it
needs to speak only then: while it waits it is as small as a Python can be. Standard library alone.
"""

import os
import sys

WAIT_SECONDS = 300.0
"""For how long an engine that fails is asked again; after that the next worker removes what is left."""

GONE_SECONDS = 30.0
"""The same for one that is not there: its containers mostly went with it."""

ANSWER_SECONDS = 30.0
PAUSE_SECONDS = 0.5

QUIET = 2
"""The number of searches in a row that must find nothing. A container requested just before the end appears a moment
later."""


def main() -> None:
    """Let go of whoever began this, then wait: nobody writes to standard input, and the kernel closes it."""
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    while os.read(0, 1):
        pass
    remove_all(sys.argv[1], sys.argv[2])


def remove_all(socket: str, label: str) -> None:
    """Remove until nothing comes any more."""
    import time
    from http.client import HTTPException

    quiet, until = 0, time.monotonic() + WAIT_SECONDS
    while quiet < QUIET and time.monotonic() < until:
        try:
            quiet = 0 if _remove(socket, label) else quiet + 1
        except (FileNotFoundError, ConnectionRefusedError):
            until = min(until, time.monotonic() + GONE_SECONDS)
        except (OSError, HTTPException, ValueError, LookupError):  # it hangs, or speaks in riddles
            quiet = 0
        time.sleep(PAUSE_SECONDS)


def _remove(socket: str, label: str) -> bool:
    import json
    from urllib.parse import urlencode

    query = urlencode({"all": "1", "filters": json.dumps({"label": [label]})})
    found = [str(one["Id"]) for one in json.loads(_ask(socket, "GET", f"/containers/json?{query}"))]
    for container in found:
        _ask(socket, "DELETE", f"/containers/{container}?force=1&v=1")
    return bool(found)


def _ask(path: str, method: str, target: str) -> bytes:
    import socket
    from http.client import HTTPConnection

    connection = HTTPConnection("docker", timeout=ANSWER_SECONDS)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(ANSWER_SECONDS)
    try:
        connection.sock.connect(path)
        connection.request(method, target)
        return connection.getresponse().read()
    finally:
        connection.close()


if __name__ == "__main__":
    main()
