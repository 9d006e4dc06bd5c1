"""``git``, ``git_status`` and ``git_commit``."""

from collections.abc import Sequence

import msgspec

from trunkline import ApprovalDetail, BlockPath, Tool, ToolContext, ToolError, preview, tool
from trunkline.api.paths import is_protected
from trunkline.api.sandbox import SandboxResult, describe_run
from trunkline.api.text import argv_of
from trunkline.api.tool import CanonicalCall, command_preview
from trunkline_git.push import push
from trunkline_git.rules import as_branch_checkout, judge_argv, without_pager
from trunkline_git.runner import Git
from trunkline_git.settings import GitSettings

BEGINNING_SECONDS = 30.0


def git_tools(settings: GitSettings) -> list[Tool]:
    """The tools, with these settings."""
    return [_status(settings), _commit(settings), _git(settings)]


def _status(settings: GitSettings) -> Tool:
    @tool(
        effect="exec",
        read_only=True,
        idempotent=True,
        timeout=settings.timeout + BEGINNING_SECONDS,
        untrusted_output=True,
    )
    async def git_status(context: ToolContext, folder: BlockPath = "") -> str:
        """Show the branch and the changes of a repository of the workspace.

        Args:
            folder: The repository, relative to the workspace; empty for the workspace itself.
        """
        git = Git(context, settings, folder)
        return describe_run(await git.run("status", "--short", "--branch"), git.limits)

    @git_status.alias
    def git_status_safe() -> CanonicalCall:
        """Tell the branch and what has changed."""
        return CanonicalCall("git_status", {})

    return git_status


def _commit(settings: GitSettings) -> Tool:
    @tool(effect="exec", timeout=3 * settings.timeout + BEGINNING_SECONDS, untrusted_output=True)
    async def git_commit(
        context: ToolContext,
        message: str,
        add_all: bool = False,
        add_files: list[BlockPath] = [],  # noqa: B006  part of the schema, and never changed
        amend: bool = False,
        allow_empty: bool = False,
        folder: BlockPath = "",
    ) -> str:
        """Commit changes of a repository of the workspace. Files with names of secrets are left out.

        Args:
            message: The message of the commit.
            add_all: Whether to add all changes first.
            add_files: Files to add first, relative to the repository.
            amend: Whether to replace the last commit, which a person must approve.
            allow_empty: Whether to commit although nothing has changed.
            folder: The repository, relative to the workspace; empty for the workspace itself.
        """
        if not message.strip():
            raise ToolError(
                "The message is empty. Describe the change. Nothing was committed.",
                kind="invalid_arguments",
            )
        git = Git(context, settings, folder)
        ran, left = await commit(
            git, message, add_all=add_all, add_files=add_files, amend=amend, allow_empty=allow_empty
        )
        note = f"\nLeft out, because secrets are kept under such names: {', '.join(left)}." if left else ""
        return describe_run(ran, git.limits) + note

    @git_commit.alias
    def git_commit_safe(
        message: str,
        add_all: bool = False,
        add_files: list[str] = [],  # noqa: B006  part of the schema, and never changed
        amend: bool = False,
        allow_empty: bool = False,
    ) -> CanonicalCall:
        """Commit changes."""
        given = {"message": message, "add_all": add_all, "add_files": add_files}
        return CanonicalCall("git_commit", {**given, "amend": amend, "allow_empty": allow_empty})

    @git_commit.previewer
    def _shown(
        context: ToolContext,
        message: str,
        add_all: bool,
        add_files: list[str],
        amend: bool,
        allow_empty: bool,
        folder: str,
    ) -> ApprovalDetail:
        what = "all changes" if add_all else ", ".join(add_files) or "what was added before"
        how = ", replacing the last commit" if amend else ""
        return preview("command", f"git commit of {what}{how}{_in(folder)}\n\n{message}")

    return git_commit


def _git(settings: GitSettings) -> Tool:
    @tool(
        effect="exec", argv="command", timeout=3 * settings.timeout + BEGINNING_SECONDS, untrusted_output=True
    )
    async def git(
        context: ToolContext, command: list[str] | str, folder: BlockPath = "", network: bool = False
    ) -> str:
        """Run git in a repository of the workspace; no other tool can push. Forcing or deleting a protected branch of a
        remote is refused. Commands that discard work need a person's approval; commands that only read need none.

        Args:
            command: The command as a list, such as ["git", "diff", "--stat"], or as a line of plain words.
            folder: The repository, relative to the workspace; empty for the workspace itself.
            network: Whether it needs the network, which a person must have permitted.
        """
        words = git_argv(command)
        verdict = judge_argv(words, settings.protected_branches)
        if verdict.ruling == "refused":
            raise ToolError(f"git was not run: {verdict.why}", kind="permission_denied")
        runs = Git(context, settings, folder, network)
        ran = await (push(runs, words[1:]) if words[0] == "push" else runs.run(*words))
        return describe_run(ran, runs.limits)

    @git.alias
    def git_safe(command: str, allow_dangerous: bool = False, reason: str = "") -> CanonicalCall:
        """Run git. What is dangerous a person is asked about, whatever is said here.

        Args:
            command: The command as a line.
            allow_dangerous: Without effect: only a person can allow it.
            reason: Without effect.
        """
        return CanonicalCall("git", {"command": command})

    @git.previewer
    def _shown(context: ToolContext, command: list[str] | str, folder: str, network: bool) -> ApprovalDetail:
        why = judge_argv(git_argv(command), settings.protected_branches).why
        where = ", ".join(word for word in (folder, "with the network" if network else "") if word)
        detail = command_preview(["git", *git_argv(command)], where)
        return msgspec.structs.replace(detail, text=f"{detail.text}\n{why}".rstrip())

    return git


def git_argv(command: list[str] | str) -> list[str]:
    """The words after ``git``, where ``checkout NAME`` means a branch.

    Raises:
        ToolError: a shell would read the line otherwise.
    """
    words = argv_of(command)
    if words is None:
        raise ToolError(
            "Give the command as a list of words: no shell reads it, so quotes and $ have no special meaning.",
            kind="invalid_arguments",
        )
    if words[:1] == ["git"]:
        words = words[1:]
    return as_branch_checkout(without_pager(words))


def _in(folder: str) -> str:
    return f" in {folder}" if folder else ""


async def commit(
    git: Git, message: str, *, add_all: bool, add_files: Sequence[str], amend: bool, allow_empty: bool
) -> tuple[SandboxResult, list[str]]:
    """Add and commit, without files that secrets are kept in; what came of it, and the protected files that were left
    out.

    To a program in the sandbox a protected file is empty, so a commit of one that git keeps would empty it.
    """
    if add_all or add_files:
        added = await git.run("add", *(["-A"] if add_all else ["--", *add_files]))
        if added.exit_code != 0 or added.killed:
            return added, []
    left = await _left_out(git)
    options = [*(["--amend"] if amend else []), *(["--allow-empty"] if allow_empty else [])]
    return await git.run("commit", "-m", message, *options), left


async def _left_out(git: Git) -> list[str]:
    """Take protected files out of what is to be committed."""
    output = await git.run("diff", "--cached", "--name-only", "--no-renames", "-z")
    names = output.stdout.decode(errors="surrogateescape").split("\0")
    found = [name for name in names if name and is_protected(tuple(name.split("/")))]
    if found:
        await git.run("reset", "-q", "--", *found)
    return found
