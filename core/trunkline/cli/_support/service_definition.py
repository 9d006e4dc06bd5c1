"""The name, program and variables of a service, which are the same under every service manager."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from trunkline.home.paths import Home, storage_errors
from trunkline.home.releases import launcher

NEW_VARIABLES = "# Variables of the service, one NAME=value in each line, for example API keys.\n"


@dataclass(frozen=True, slots=True)
class ServiceDefinition:
    """The service of one home. ``variables`` is the file with the environment variables that the owner adds."""

    name: str
    home: Path
    program: tuple[str, ...]
    path: str
    variables: Path

    @classmethod
    def of(cls, home: Home) -> "ServiceDefinition":
        """Return the service of this home, with the program and the PATH of this process."""
        root = home.path.resolve()
        program = (launcher(root), "-m", "trunkline.cli.main", "up", "--log", "json")
        return cls(_name(root), root, program, os.environ.get("PATH", os.defpath), root / "service.env")

    def write_variables(self) -> None:
        """Create the file for the owner's variables, readable by the owner alone, if it does not exist. Raises
        StorageError.
        """
        with storage_errors(self.variables):
            self.home.mkdir(parents=True, exist_ok=True)
            try:
                file = os.open(self.variables, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except FileExistsError:
                self.variables.chmod(0o600)
                return
            with os.fdopen(file, "w", encoding="utf-8") as written:
                written.write(NEW_VARIABLES)

    def read_variables(self) -> dict[str, str]:
        """Return the owner's variables; none when the file is missing or cannot be read."""
        try:
            lines = self.variables.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            return {}
        pairs = [
            line.strip().split("=", 1) for line in lines if "=" in line and not line.lstrip().startswith("#")
        ]
        return {name.strip(): _unquoted(value.strip()) for name, value in pairs}


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if is_quoted else value


def _name(home: Path) -> str:
    """Return ``trunkline`` for the usual home. Two other homes never share a name, whatever they are called."""
    if home == (Path.home() / ".trunkline").resolve():
        return "trunkline"
    return f"trunkline-{hashlib.sha256(str(home).encode()).hexdigest()[:8]}"
