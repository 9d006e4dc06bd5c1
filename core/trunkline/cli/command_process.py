"""Runs a command of this program in a process of its own, for a channel that shows its output. Contains no command."""

from collections.abc import Sequence


async def run_own_command(arguments: Sequence[str]) -> str:
    """Run ``trunkline ARGUMENTS`` on the home of this process, and return what the command prints.

    The command finds the running platform as it does in any shell; also the one that runs in this process. It has no
    input, so a command that must ask a person refuses. It is ended when this call is cancelled.

    Raises:
        TrunklineError: the command failed. The sentence and the hint are those of the command.
    """
    import os
    import subprocess
    import sys

    import anyio

    # Not in the terminal's process group: Ctrl-C is a key of the channel.
    done = await anyio.run_process(
        [sys.executable, "-m", "trunkline.cli.main", *arguments],
        stdin=subprocess.DEVNULL,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
        start_new_session=True,
    )
    if done.returncode:
        raise _failure(done.stderr.decode(errors="replace"))
    return done.stdout.decode(errors="replace").rstrip()


def _failure(printed: str) -> Exception:
    """Return the error that a command printed."""
    from trunkline.errors import TrunklineError

    lines = [line.strip() for line in printed.strip().splitlines() if line.strip()]
    error, _, hint = "\n".join(lines).partition("\nHint: ")
    sentence = error.rpartition("Error: ")[2]
    return TrunklineError(sentence or "The command failed.", hint=hint)
