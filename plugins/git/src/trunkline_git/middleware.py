"""The guard at work: around every tool that is given an argument vector or a script, this plugin's own and others'.

What it refuses no policy, approval or mode permits. Of other tools' programs it sees what is in plain sight; that no
program rewrites what was pushed is held by the sandbox.
"""

from collections.abc import Sequence

from trunkline import ToolError, ToolOutcome
from trunkline.api.text import argv_from_json, argv_of
from trunkline.api.tool import Proceed, Stage, ToolInvocation
from trunkline_git.rules import FREE, Verdict, as_branch_checkout, judge_argv, without_pager
from trunkline_git.script import judge_command

COMMIT, OURS = "git_commit", "native:"
AMENDS = Verdict("confirm", "It replaces the last commit.")


class RefuseMiddleware:
    """Refuses what no agent may do."""

    stage: Stage = "policy"

    def __init__(self, protected: Sequence[str]) -> None:
        self._protected = protected

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Proceed, or raise ToolError."""
        verdict = judge_call(invocation, self._protected)
        if verdict.ruling == "refused":
            raise ToolError(f"git was not run: {verdict.why}", kind="permission_denied")
        return await proceed(invocation)


class ConfirmMiddleware:
    """Asks a person about what throws work away, also where nobody is asked otherwise."""

    stage: Stage = "gate"

    def __init__(self, protected: Sequence[str]) -> None:
        self._protected = protected

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Proceed with what is free or was approved as it stands, else ask."""
        verdict = judge_call(invocation, self._protected)
        if verdict.ruling == "free" or invocation.approved == invocation.call_hash:
            return await proceed(invocation)
        return ToolOutcome(
            call=invocation.context.call,
            status="approval",
            call_hash=invocation.call_hash,
            question=f"{verdict.why} Allow this git command?",
        )


def judge_call(invocation: ToolInvocation, protected: Sequence[str]) -> Verdict:
    """Judge a call. A call that runs no git, as far as its text shows, is free."""
    spec, arguments = invocation.spec, invocation.arguments
    if (spec.own_name or spec.name) == COMMIT and spec.source.startswith(OURS):
        return AMENDS if arguments.get("amend") else FREE
    given = arguments.get(spec.argv) if spec.argv else None
    if spec.name == "git":
        words = argv_of(given) or []
        return judge_git_argv(words[1:] if words[:1] == ["git"] else words, protected)
    if not isinstance(given, str):
        return judge_command([str(word) for word in given or ()], protected)
    return judge_command(argv_from_json(given) or given, protected)


def judge_git_argv(words: Sequence[str], protected: Sequence[str]) -> Verdict:
    """Judge the arguments of the tool ``git``. Invalid arguments are free here, because the tool itself reports
    them."""
    return judge_argv(as_branch_checkout(without_pager(words)), protected) if words else FREE
