#!/usr/bin/env python3
"""Does what ``systemctl --user`` does with one unit, as systemd.service(5) says, without systemd: it reads the unit,
starts its program with its variables, and ends it by SIGTERM. What runs is kept in the folder SYSTEMCTL_STATE.
"""

import configparser
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

UNITS = Path(os.environ["HOME"], ".config/systemd/user")
STATE = Path(os.environ["SYSTEMCTL_STATE"])


def main(verb: str, *words: str) -> None:
    """Carry out one command."""
    STATE.mkdir(exist_ok=True)
    name = next((word for word in words if word.endswith(".service")), "")
    if verb == "restart":
        stop(name)
        start(name)
    elif verb == "stop":
        stop(name)
    elif verb == "enable":
        (STATE / "enabled").write_text(name)
    elif verb == "disable":
        (STATE / "enabled").unlink(missing_ok=True)
        stop(name)
    elif verb == "show":
        sys.stdout.write(f"MainPID={pid(name) or 0}\nExecMainStartTimestamp=Sat 2026-11-28 08:00:00 UTC\n")


def start(name: str) -> None:
    """Start the program of a unit, in a session of its own."""
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNITS / name)
    service = unit["Service"]
    environ = dict(word.split("=", 1) for word in shlex.split(unescaped(service["Environment"])))
    environ["HOME"] = os.environ["HOME"]
    file = Path(unescaped(service["EnvironmentFile"]).removeprefix("-"))
    for line in file.read_text().splitlines() if file.exists() else []:
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            environ[key] = value
    words = shlex.split(unescaped(service["ExecStart"]).replace("$$", "$"))
    with (STATE / "log").open("ab") as log:
        process = subprocess.Popen(
            words,
            env=environ,
            cwd=unescaped(service["WorkingDirectory"]),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (STATE / name).write_text(str(process.pid))


def stop(name: str) -> None:
    """End the program of a unit, and wait for its end."""
    running = pid(name)
    if running is not None:
        os.kill(running, signal.SIGTERM)
        while pid(name) is not None:
            time.sleep(0.02)


def pid(name: str) -> int | None:
    """The process of a unit, while it runs."""
    try:
        found = int((STATE / name).read_text())
        state = Path(f"/proc/{found}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, ValueError):
        return None
    return None if state == "Z" else found


def unescaped(text: str) -> str:
    """A value without the marks of specifiers."""
    return text.replace("%%", "%")


if __name__ == "__main__":
    main(*[word for word in sys.argv[1:] if word != "--user"])
