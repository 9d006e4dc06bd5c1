"""Build the arguments of bubblewrap for a program. Pure."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from trunkline.api.sandbox import WORKSPACE, ProgramRequest
from trunkline_sandbox.bubblewrap import filesystem_view
from trunkline_sandbox.bubblewrap.file_masker import EMPTY_PLACE
from trunkline_sandbox.masks import EMPTY_FILE

MIB = 1024 * 1024
NAMESPACE_OPTIONS = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--uid", str(filesystem_view.USER), "--gid", str(filesystem_view.USER), "--hostname", "sandbox",
    "--cap-drop", "ALL", "--new-session", "--die-with-parent", "--clearenv",
)  # fmt: skip

SHELL = ("/bin/sh", "-c", 'exec "$@"', "sh")
"""Starts the program, so that a missing one is reported as everywhere: exit code 127 and a sentence."""


def bubblewrap_options(
    program: ProgramRequest, made: Mapping[str, int], further: Sequence[Path]
) -> tuple[str, ...]:
    """Return the arguments of bubblewrap, without the descriptors that it needs itself.

    ``made`` maps the files to be made to the descriptors that their texts are read from; ``further`` are the folders of
    this machine that the program may read besides the system.
    """
    limits, half = program.limits, str(program.limits.memory * MIB // 2)
    words = [*NAMESPACE_OPTIONS, *(() if limits.host_network else ("--unshare-net",))]
    for name, value in program.env.items():
        words += "--setenv", name, value
    words += "--proc", "/proc", "--dev", "/dev"
    for option in filesystem_view.proc_options(str(EMPTY_FILE)):
        words += option
    words += "--size", half, "--tmpfs", "/dev/shm"
    words += "--size", half, "--tmpfs", "/tmp", "--dir", "/var", "--symlink", "/tmp", "/var/tmp"
    for option in filesystem_view.system_options(limits, further):
        words += option
    for place, handle in made.items():
        words += "--ro-bind-data", str(handle), place
    for place, path in program.read_only.items():
        words += "--ro-bind", str(path), place
    if program.workspace is None:
        words += "--dir", WORKSPACE
    else:
        words += "--bind" if limits.writable else "--ro-bind", str(program.workspace), WORKSPACE
    words += "--ro-bind", str(EMPTY_FILE), EMPTY_PLACE
    words += "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", program.working_directory
    return tuple(words)
