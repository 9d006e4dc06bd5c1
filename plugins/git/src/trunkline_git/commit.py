"""A commit: what is to be in it is added first, without files that secrets are kept in."""

from collections.abc import Sequence

from trunkline.api.paths import is_protected
from trunkline.api.sandbox import SandboxResult
from trunkline_git.runner import Git


async def commit(
    git: Git, message: str, *, add_all: bool, add_files: Sequence[str], amend: bool, allow_empty: bool
) -> tuple[SandboxResult, list[str]]:
    """Add and commit; what came of it, and the protected files that were left out.

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
    told = await git.run("diff", "--cached", "--name-only", "--no-renames", "-z")
    names = told.stdout.decode(errors="surrogateescape").split("\0")
    found = [name for name in names if name and is_protected(tuple(name.split("/")))]
    if found:
        await git.run("reset", "-q", "--", *found)
    return found
