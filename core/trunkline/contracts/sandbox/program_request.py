"""Checks of a request to start a program in a sandbox, shared by all backends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from trunkline.contracts.sandbox.sandbox import DEFAULT_LIMITS, WORKSPACE, SandboxLimits
from trunkline.errors import ToolError


@dataclass(frozen=True, slots=True)
class ProgramRequest:
    """The arguments of ``start``, checked. Create it with ``check_program``.

    ``folder`` is relative to the workspace, ``""`` for the workspace itself.
    """

    argv: tuple[str, ...]
    workspace: Path | None
    env: dict[str, str]
    folder: str
    read_only: dict[str, Path] = field(default_factory=dict)
    limits: SandboxLimits = DEFAULT_LIMITS
    label: str = ""

    @property
    def working_directory(self) -> str:
        """The working directory of the program, as a path inside the sandbox."""
        return f"{WORKSPACE}/{self.folder}" if self.folder else WORKSPACE


MAX_ARGUMENT_BYTES = 128 * 1024 - 1
"""The largest number of bytes of one argument or ``NAME=value`` (MAX_ARG_STRLEN of Linux, without its NUL)."""

MAX_ARGV_BYTES = 1024 * 1024
"""The largest number of bytes of all arguments and the environment together: half of what Linux permits with a stack
of 8 MiB.
"""

BASE_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}


def check_program(
    argv: Sequence[str],
    *,
    workspace: Path | None,
    env: Mapping[str, str],
    folder: str = "",
    read_only: Mapping[str, Path] | None = None,
    limits: SandboxLimits = DEFAULT_LIMITS,
    label: str = "",
) -> ProgramRequest:
    """Check the arguments of ``start`` and return them in normal form.

    Raises:
        ToolError: an argument or environment variable is invalid, the folder is outside the workspace, or a path in
            ``read_only`` is invalid.
    """
    whole = {**BASE_ENV, **env}
    _refuse_words([*argv], whole)
    for place in read_only or {}:
        if not _is_place(place):
            raise ToolError(
                f"{place!r} cannot be the path of a file in a sandbox: name an absolute path outside of {WORKSPACE}.",
                kind="invalid_arguments",
            )
    if folder.startswith("/") or ".." in PurePosixPath(folder).parts or "\0" in folder:
        raise ToolError(f"{folder!r} is not a folder below the workspace.", kind="invalid_arguments")
    if workspace is None and folder not in ("", "."):
        raise ToolError(f"{folder!r} needs a workspace, and the program has none.", kind="invalid_arguments")
    plain = str(PurePosixPath(folder)) if folder not in ("", ".") else ""
    return ProgramRequest(tuple(argv), workspace, whole, plain, dict(read_only or {}), limits, label)


def _refuse_words(argv: list[str], env: dict[str, str]) -> None:
    if not argv or not argv[0]:
        raise ToolError("There is no program to run: name it, then its arguments.", kind="invalid_arguments")
    for name in env:
        if not name or "=" in name:
            raise ToolError(
                f"{name!r} cannot be the name of an environment variable.", kind="invalid_arguments"
            )
    words = [*argv, *(f"{name}={value}" for name, value in env.items())]
    try:
        sizes = [len(word.encode()) for word in words]
    except UnicodeEncodeError as error:
        raise ToolError(
            "An argument or environment variable is not valid text.", kind="invalid_arguments"
        ) from error
    if any("\0" in word for word in words):
        raise ToolError(
            "An argument or environment variable contains a NUL character, which no program can receive.",
            kind="invalid_arguments",
        )
    if max(sizes) > MAX_ARGUMENT_BYTES or sum(sizes) + 16 * len(sizes) > MAX_ARGV_BYTES:
        raise ToolError(
            f"The arguments and the environment are too long: at most {MAX_ARGUMENT_BYTES} bytes each "
            f"and {MAX_ARGV_BYTES} together. Give long text to the program on its standard input or in a file.",
            kind="too_large",
        )


def _is_place(place: str) -> bool:
    taken = ("", "/proc", "/dev", "/sys", WORKSPACE)
    parts = place.split("/")
    plain = place.startswith("/") and not {"", ".", ".."} & set(parts[1:]) and "\0" not in place
    return plain and not any(place == one or (one and place.startswith(f"{one}/")) for one in taken)
