"""Which Python runs a session: the worker's own where the sandbox can run it, else the one that the sandbox has."""

import os
import sys
from pathlib import Path

START_SCRIPT = '"$@"; code=$?; case $code in 126|127) shift; exec python3 "$@";; esac; exit $code'
"""For ``sh``: the first program, or ``python3`` where it is not there or made for another system, such as in an image.
Their libraries are not needed."""

SYSTEM_FOLDER = Path("/usr")
"""What lies here every sandbox has, or has its own of."""


def command(program: str) -> tuple[str, ...]:
    """The argument vector of a Python, without surroundings and libraries, that runs a program."""
    return "sh", "-c", START_SCRIPT, "sh", own_interpreter(), "-I", "-S", "-B", program


def own_interpreter() -> str:
    """This interpreter, behind all links and environments."""
    return os.path.realpath(sys.executable) if sys.platform == "linux" else "python3"


def runtime_mounts() -> dict[str, Path]:
    """Return the folders that the sandbox needs for ``own_interpreter``, where it is outside the system's folders."""
    base = Path(os.path.realpath(sys.base_prefix))
    inside = base.is_relative_to(SYSTEM_FOLDER) or base == Path("/")
    if sys.platform != "linux" or inside or not Path(own_interpreter()).is_relative_to(base):
        return {}
    return {str(base): base}
