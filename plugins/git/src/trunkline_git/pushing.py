"""A push that is what it says: git is asked first what it would change, and is then told to change just that.

What a push does is not in its words alone: a repository's configuration may send a branch to another one and force it.
"""

from collections.abc import Sequence

import msgspec

from trunkline import SandboxResult, ToolError
from trunkline_git.guard import branch_of
from trunkline_git.running import Git

ONLY_TOLD = ("-n", "--dry-run")
KEPT = ("--atomic", "--no-verify", "--verify", "--set-upstream", "-u", "--force-if-includes")
KEPT_WITH_VALUE = ("--force-with-lease", "--push-option=")


class Update(msgspec.Struct, frozen=True):
    """A line of ``git push --porcelain``: a sign, what is pushed (nothing: deleted), and where to."""

    sign: str
    source: str
    target: str

    @property
    def refspec(self) -> str:
        """Just this, in words for git."""
        return f"{'+' if self.sign == '+' else ''}{self.source}:{self.target}"


async def push(git: Git, words: Sequence[str]) -> SandboxResult:
    """Push, unless it would force or delete a protected branch.

    Raises:
        ToolError: it would.
    """
    words = _apart(words)
    would = await git.run("push", "--dry-run", "--porcelain", "--no-verify", *_without_checks(words))
    if would.exit_code != 0 or would.killed or any(word in ONLY_TOLD for word in words):
        return would
    changes = [update for update in updates(would.stdout.decode(errors="replace")) if update.sign in " +-*"]
    for update in changes:
        if update.sign in "+-" and branch_of(update.target.lower()) in git.protected:
            what = "delete" if update.sign == "-" else "force"
            raise ToolError(
                f"This would {what} the protected branch {branch_of(update.target)} of the remote. Nothing was pushed. "
                f"Push to another branch, and let a person merge it.",
                kind="permission_denied",
            )
    if not changes:
        return would
    remote = next((word for word in words if not word.startswith("-")), None) or await _usual_remote(git)
    kept = [word for word in words if word in KEPT or word.startswith(KEPT_WITH_VALUE)]
    return await git.run("push", *kept, "--", remote, *(update.refspec for update in changes))


def updates(told: str) -> list[Update]:
    """What ``git push --porcelain`` tells."""
    found = []
    for line in told.splitlines():
        sign, _, rest = line.partition("\t")
        source, colon, target = rest.partition("\t")[0].partition(":")
        if len(sign) == 1 and colon:
            found.append(Update(sign, source, target))
    return found


def _apart(words: Sequence[str]) -> list[str]:
    """The words, each letter of a cluster for itself: ``-nv`` only tells, as ``-n`` does."""
    found: list[str] = []
    for word in words:
        cluster = word.startswith("-") and not word.startswith("--")
        found += [f"-{letter}" for letter in word[1:]] if cluster else [word]
    return found


def _without_checks(words: Sequence[str]) -> list[str]:
    """The words but for those that say to run the checks of a repository, which come once, at the push itself."""
    return [word for word in words if word not in ("--verify", "--no-verify", "-q", "--quiet")]


async def _usual_remote(git: Git) -> str:
    """Where git pushes to when nobody says it."""
    head = (await git.run("symbolic-ref", "-q", "HEAD")).stdout.decode().strip()
    if not head:
        return "origin"
    told = (await git.run("for-each-ref", "--format=%(push:remotename)", head)).stdout.decode().strip()
    return told or "origin"
