"""The guard at work: around every tool that is given an argument vector, this plugin's own and others'.

What it refuses no policy, approval or mode permits. A script's text it does not read: who approves a script approves
what it does.
"""

from collections.abc import Sequence
from pathlib import PurePath

from trunkline import Proceed, Stage, ToolError, ToolInvocation, ToolOutcome
from trunkline.text import words_of
from trunkline_git.guard import FREE, Verdict, judged, plainly

COMMIT, OURS = "git_commit", "native:"
ELSEWHERE = Verdict(
    "refused",
    "a push goes by the tool git, which finds out first what the settings of the repository make of it.",
)
AROUND = frozenset(
    (
        *("busybox", "chrt", "command", "doas", "env", "exec", "flock", "ionice", "nice", "nohup", "prlimit"),
        *("setsid", "stdbuf", "sudo", "taskset", "time", "timeout", "unshare", "xargs"),
    )
)
"""Programs that run another one, which stands among their words. A script for ``sh -c`` is not read."""

AMENDING = Verdict("confirm", "It replaces the last commit.")


class Refusing:
    """Refuses what no agent may do."""

    stage: Stage = "policy"

    def __init__(self, protected: Sequence[str]) -> None:
        self._protected = protected

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Proceed, or raise ToolError."""
        verdict = verdict_on(invocation, self._protected)
        if verdict.ruling == "refused":
            raise ToolError(f"git was not run: {verdict.why}")
        return await proceed(invocation)


class Confirming:
    """Asks a person about what throws work away, also where nobody is asked otherwise."""

    stage: Stage = "gate"

    def __init__(self, protected: Sequence[str]) -> None:
        self._protected = protected

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Proceed with what is free or was approved as it stands, else ask."""
        verdict = verdict_on(invocation, self._protected)
        if verdict.ruling == "free" or invocation.approved == invocation.call_hash:
            return await proceed(invocation)
        return ToolOutcome(
            call=invocation.context.call,
            status="approval",
            call_hash=invocation.call_hash,
            question=f"{verdict.why} Let git do it?",
        )


def verdict_on(invocation: ToolInvocation, protected: Sequence[str]) -> Verdict:
    """What is ruled about a call; free is what does not run git by an argument vector."""
    spec, arguments = invocation.spec, invocation.arguments
    if (spec.own_name or spec.name) == COMMIT and spec.source.startswith(OURS):
        return AMENDING if arguments.get("amend") else FREE
    given = arguments.get(spec.argv) if spec.argv else None
    words = words_of(given.strip() if isinstance(given, str) else given)  # a newline at the end makes no script of it
    if not words:
        return FREE
    if spec.name == "git" and words[0] != "git":
        words = ["git", *words]
    told = _told_git(words)
    if told is None:
        return FREE
    said = _of_git(told)
    verdict = judged(plainly(said) if spec.name == "git" else said, protected)
    elsewhere = verdict.ruling != "refused" and said[0] == "push" and spec.name != "git"
    return ELSEWHERE if elsewhere else verdict


def _told_git(words: Sequence[str]) -> list[str] | None:
    """The words for git, None when it is another program that is run. git's commands are programs too: git-reset."""
    program = PurePath(words[0]).name.lower()
    if program in AROUND:
        inner = [at for at, word in enumerate(words) if at and _is_git(PurePath(word).name.lower())]
        return _told_git(words[inner[0] :]) if inner and words[inner[0] + 1 :] else None
    if not _is_git(program):
        return None
    return [*words[1:]] if program == "git" else [program.removeprefix("git-"), *words[1:]]


def _is_git(program: str) -> bool:
    return program == "git" or program.startswith("git-")


def _of_git(words: list[str]) -> list[str]:
    """The words from the command on, past options that only say where and how it is shown."""
    while words[:1] and words[0] in ("--no-pager", "-P", "-C"):
        words = words[2 if words[0] == "-C" else 1 :]
    return words
