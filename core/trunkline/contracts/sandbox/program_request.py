"""ProgramRequest: a checked request to start a program in a sandbox, with its limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from trunkline.errors import ToolError

WORKSPACE = "/workspace"
"""The path of the block's workspace inside every sandbox."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """The limits of one run: ``timeout`` in seconds, ``memory`` in MiB, ``cpus``, ``processes``, and ``output`` in
    bytes per stream. ``writable`` permits writing to the workspace; ``/tmp`` is always writable.

    ``network`` gives access to other hosts, but not to services on this machine's loopback. ``host_network`` gives
    access to this machine's own network: the program can then reach the bus, the gateway and every other service that
    trusts local callers.

    ``repository`` is the path, in the workspace, of the one bare git repository that the program may change. A
    program can change no other bare repository, so it cannot alter what was pushed there.

    ``run`` enforces ``timeout`` and ``output``. A program of ``start`` runs until the caller ends it, and its output
    waits in a pipe until it is read.
    """

    timeout: float = 30.0
    memory: int = 512
    cpus: float = 1.0
    processes: int = 64
    output: int = 1_000_000
    network: bool = False
    host_network: bool = False
    writable: bool = True
    repository: str = ""


DEFAULT_LIMITS = SandboxLimits()
"""The limits of a program if none are given."""


@dataclass(frozen=True, slots=True)
class ProgramRequest:
    """The arguments of ``Sandbox.start``, checked and in normal form. Create it with ``check_program``.

    ``folder`` is relative to the workspace, ``""`` for the workspace itself. ``tool`` is the tool whose call runs the
    program, "" if none does; the tools worker sets it, and the owner may give it an image. Raises ToolError if an
    argument or environment variable is invalid, the folder is outside the workspace, or a path in ``read_only`` is
    invalid.
    """

    argv: tuple[str, ...]
    workspace: Path | None
    env: dict[str, str]
    folder: str
    read_only: dict[str, Path] = field(default_factory=dict)
    limits: SandboxLimits = DEFAULT_LIMITS
    label: str = ""
    show_output: bool = False
    tool: str = ""

    def __post_init__(self) -> None:
        _refuse_words([*self.argv], self.env)
        for place in self.read_only:
            if not _is_place(place):
                raise ToolError(
                    f"{place!r} cannot be the path of a file in a sandbox: name an absolute path outside of "
                    f"{WORKSPACE}.",
                    kind="invalid_arguments",
                )
        if self.folder.startswith("/") or ".." in PurePosixPath(self.folder).parts or "\0" in self.folder:
            raise ToolError(f"{self.folder!r} is not a folder below the workspace.", kind="invalid_arguments")
        if self.workspace is None and self.folder:
            raise ToolError(
                f"{self.folder!r} needs a workspace, and the program has none.", kind="invalid_arguments"
            )

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
    show_output: bool = False,
) -> ProgramRequest:
    """Check the arguments of ``start`` and return them in normal form.

    Raises:
        ToolError: an argument is invalid; see ``ProgramRequest``.
    """
    plain = str(PurePosixPath(folder)) if folder not in ("", ".") else ""
    whole = {**BASE_ENV, **env}
    return ProgramRequest(
        tuple(argv), workspace, whole, plain, dict(read_only or {}), limits, label, show_output
    )


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
