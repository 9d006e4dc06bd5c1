"""Labels that identify the programs of a home among all processes and containers of a machine. Panic finds the programs
of a dead worker by them."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

VARIABLE = "TRUNKLINE_SANDBOX"
HOME_LABEL, OWNER_LABEL, LABEL = "trunkline.home", "trunkline.owner", "trunkline.label"
GUARDIAN_LABEL = "trunkline.guardian"


def home_id(home: Path) -> str:
    """A short name of the home folder."""
    return hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:16]


def bubblewrap_labels(home: Path, label: str) -> tuple[str, ...]:
    """Options of bubblewrap that can be seen from outside, and change nothing: it clears the environment after them."""
    return "--setenv", VARIABLE, f"{home_id(home)} {label}".strip()


def container_labels(home: Path, guardian: str, label: str) -> dict[str, str]:
    """The labels of a container: whose home, which process made it, who removes it, and what for."""
    return {
        HOME_LABEL: home_id(home),
        OWNER_LABEL: _owner_id(os.getpid()),
        GUARDIAN_LABEL: guardian,
        LABEL: label,
    }


def is_owner_gone(owner: str) -> bool:
    """Report whether the process that made a container has ended; False for one that cannot be seen from here."""
    here, _, rest = owner.partition(" ")
    process = rest.partition(" ")[0]
    return here == _pid_namespace() and process.isdigit() and _owner_id(int(process)) != owner


def _owner_id(process: int) -> str:
    """The process and when it began, which no later one of the same number did; and the namespace that it counts in."""
    began = ""
    with suppress(OSError):
        began = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{_pid_namespace()} {process} {began}"


def _pid_namespace() -> str:
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return "unknown"
