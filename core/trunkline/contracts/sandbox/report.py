"""The report about a program for a model: exit code, standard output and standard error, bounded in length."""

from trunkline.contracts.sandbox.program_request import SandboxLimits
from trunkline.contracts.sandbox.sandbox import SandboxResult
from trunkline.errors import ToolError, ToolErrorKind

MAX_OUTPUT = 50_000
"""The largest number of characters of output in a report."""

_ENDED = {
    "timeout": "It did not end in its time, so it was ended after {seconds:.1f} s, with all that it had begun.",
    "memory": "It needed more than the {memory} MB of memory that it may have, so it was ended with all that it had "
    "begun. A person can permit it more.",
    "disk": "It filled the workspace, or its disk, beyond what it may hold ([plugins.sandbox] workspace_mb), so it was "
    "ended with all that it had begun. Remove what is not needed, or have a person permit more.",
    "unmeasured": "What it took of this machine could not be measured, so it was ended with all that it had begun.",
    "panic": "It was ended by panic, with all that it had begun.",
}

_KINDS: dict[str, ToolErrorKind] = {
    "timeout": "timeout",
    "memory": "limit_exceeded",
    "disk": "limit_exceeded",
    "unmeasured": "limit_exceeded",
}


def describe_run(ran: SandboxResult, limits: SandboxLimits) -> str:
    """Return the result as text. ``limits`` are the limits of the run.

    Raises:
        ToolError: the program was killed; the text has its output up to then.
    """
    if not ran.killed:
        missing = (
            "" if ran.exit_code != 127 else " (there is no such program here, or it began one that is not)"
        )
        return f"exit code {ran.exit_code}{missing}, {ran.seconds:.1f} s{format_output(ran)}"
    why = _ENDED.get(ran.killed, "It was ended from outside, with all that it had begun.")
    kind = _KINDS.get(ran.killed, "cancelled")
    raise ToolError(
        f"{why.format(seconds=ran.seconds, memory=limits.memory)} Part of its work may be done: check before you "
        f"run it again.{format_output(ran)}",
        kind=kind,
    )


def format_output(ran: SandboxResult) -> str:
    """Return both streams, each under its name. The middle of long output is left out."""
    texts = {"stdout": ran.stdout.decode(errors="replace"), "stderr": ran.stderr.decode(errors="replace")}
    shorter = min(map(len, texts.values()))
    room = max(MAX_OUTPUT // 2, MAX_OUTPUT - shorter)
    parts = [
        f"\n--- {name}\n{cut_middle(text, room).rstrip()}" for name, text in texts.items() if text.strip()
    ]
    return "".join(parts) or "\nIt printed nothing."


def cut_middle(text: str, most: int) -> str:
    """Return the text; if it is longer than ``most``, return its beginning and end with a line between them that
    states the number of missing characters.
    """
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
