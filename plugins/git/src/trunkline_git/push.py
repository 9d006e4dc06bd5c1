"""A push that is what it says: git is asked first what it would change, and then changes just that, from a repository
that no program in the workspace has set up.

What a push does is not in its words alone: a repository's settings may send a branch to another one and force it, and
name programs that git runs. So what git says it would do is only a proposal. Whether a protected branch of a folder is
forced is decided by the repository that is pushed into, from its own objects.
"""

import posixpath
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePosixPath

import msgspec

from trunkline import ToolError
from trunkline.api.sandbox import WORKSPACE, SandboxResult
from trunkline_git.rules import branch_of
from trunkline_git.runner import Git, PushSource

ONLY_TOLD = ("-n", "--dry-run")
KEPT = ("--atomic",)
KEPT_WITH_VALUE = ("--push-option=",)
LEASE = "--force-with-lease"

_HASH = re.compile("[0-9a-f]{40,64}")

GUARDED_RECEIVE = (
    "--receive-pack=GIT_NO_REPLACE_OBJECTS=1 git -c core.commitGraph=false -c receive.denyNonFastForwards=true "
    "-c receive.denyDeletes=true receive-pack"
)
"""Has a repository in a folder judge by itself what forces or deletes a branch, whatever its settings are."""


class RefUpdate(msgspec.Struct, frozen=True):
    """A line of ``git push --porcelain``: a flag, the pushed ref ("": a deletion), the target, its repository, and the
    commit that was there ("" when it is unknown)."""

    sign: str
    source: str
    target: str
    url: str
    before: str = ""

    @property
    def forces(self) -> bool:
        """Report whether commits that are there are no longer there after it."""
        return self.sign in "+-"


async def push(git: Git, words: Sequence[str]) -> SandboxResult:
    """Push, unless it would force or delete a protected branch.

    Raises:
        ToolError: it would.
    """
    words = _split_options(words)
    would = await git.run("push", "--dry-run", "--porcelain", *_without_quiet(words))
    if would.exit_code != 0 or would.killed or any(word in ONLY_TOLD for word in words):
        return would
    changes = [update for update in updates(would.stdout.decode(errors="replace")) if update.sign in " +-*"]
    if not changes:
        return would
    source = await _push_source(git)
    ran = would
    for url in dict.fromkeys(update.url for update in changes):
        there = [update for update in changes if update.url == url]
        ran = await _send(git, source, url, there, words)
        if ran.exit_code != 0 or ran.killed:
            return ran
    await _update_tracking(git, words, changes)
    return ran


async def _send(
    git: Git, source: PushSource, url: str, changes: Sequence[RefUpdate], words: Sequence[str]
) -> SandboxResult:
    """Make these changes in one repository. Raises ToolError."""
    folder = _workspace_path(source, url)
    repository = "" if folder is None else _bare_repository(git, folder)
    names = await _resolve_symrefs(git, repository, changes)
    guarded = [change for change in changes if branch_of(names[change.target].lower()) in git.protected]
    for change in guarded:
        if change.forces:
            what = "delete" if change.sign == "-" else "force"
            raise ToolError(
                f"This would {what} the protected branch {branch_of(names[change.target])} of the remote. Nothing was "
                "pushed. Push to another branch, and let a person merge it.",
                kind="permission_denied",
            )
    if guarded and any(change.forces for change in changes):
        raise ToolError(
            "This would force or delete a branch together with a protected one. Nothing was pushed. Push the protected "
            "branch by itself.",
            kind="permission_denied",
        )
    commits = await _commits(git, [change.source for change in changes if change.source])
    receiving = (GUARDED_RECEIVE,) if guarded and folder is not None else ()
    leases = any(word.startswith(LEASE) for word in words)
    options = [word for word in words if word in KEPT or word.startswith(KEPT_WITH_VALUE)]
    refspecs = []
    for change in changes:
        forced = change.sign == "+"
        if forced and leases:
            options.append(f"{LEASE}={change.target}:{change.before}")
        refspecs.append(
            f"{'+' if forced and not leases else ''}{commits.get(change.source, '')}:{change.target}"
        )
    # By its own path: under the name that was given, git could be led to another repository, and run its hooks.
    where = f"{WORKSPACE}/{repository}" if repository else url
    return await git.push_from(source, repository, *options, *receiving, "--", where, *refspecs)


async def _commits(git: Git, names: Sequence[str]) -> dict[str, str]:
    """Return the commit that each of these names resolves to. Raises ToolError."""
    output = (await git.run("rev-parse", *names)).stdout.decode(errors="replace").split() if names else []
    if len(output) != len(names) or not all(map(_HASH.fullmatch, output)):
        raise ToolError("git did not report which commits it would push. Nothing was pushed.", kind="failed")
    return dict(zip(names, output, strict=True))


async def _push_source(git: Git) -> PushSource:
    """The repository that is pushed from, as the workspace has it."""
    asked = ("--show-toplevel", "--git-path", "objects", "--git-path", "shallow", "--show-object-format")
    output = (await git.run("rev-parse", "--path-format=absolute", *asked)).stdout.decode().splitlines()
    if len(output) != 4:
        raise ToolError(
            "git did not report where this repository keeps its objects. Nothing was pushed.", kind="failed"
        )
    top, objects, shallow, hashes = output
    return PushSource(posixpath.relpath(top, WORKSPACE), objects, shallow, hashes)


def _workspace_path(source: PushSource, url: str) -> str | None:
    """The folder that an address names, relative to the workspace; None for a repository that is elsewhere."""
    path = url.removeprefix("file://")
    if "://" in path or ":" in path.partition("/")[0]:
        return None
    return posixpath.relpath(posixpath.join(WORKSPACE, source.top, path), WORKSPACE)


def _bare_repository(git: Git, folder: str) -> str:
    """The bare repository that git finds by this name of a folder; "" where it finds none, or a working copy."""
    with git.context.files() as files:
        for name in (folder, f"{folder}.git"):
            with suppress(ToolError, OSError):
                names = {PurePosixPath(entry.path).name for entry in files.listdir(name)}
                if ".git" in names:
                    return ""
                if "HEAD" in names:
                    return name
    return ""


async def _resolve_symrefs(git: Git, repository: str, changes: Sequence[RefUpdate]) -> dict[str, str]:
    """The branches that the changes are made to: in a repository of the workspace, one may stand for another."""
    names = {change.target: change.target for change in changes}
    if not repository:
        return names
    asked = ("for-each-ref", "--format=%(refname) %(symref)", *names)
    output = await git.run(f"--git-dir={WORKSPACE}/{repository}", *asked)
    pairs = (line.split(" ", 1) for line in output.stdout.decode(errors="replace").splitlines())
    return names | {name: meant for name, meant in pairs if meant}


async def _update_tracking(git: Git, words: Sequence[str], changes: Sequence[RefUpdate]) -> None:
    """Have the repository know what it has pushed, as git does after a push, and follow it if that was asked for."""
    remote = next((word for word in words if not word.startswith("-")), None) or await _default_remote(git)
    upstream = [word for word in words if word in ("-u", "--set-upstream")]
    pushed = [f"{change.source}:{change.target}" for change in changes if change.source]
    if pushed:
        await git.run("push", "--quiet", "--no-verify", *upstream, "--", remote, *pushed)
    gone = [f"{remote}/{branch_of(change.target)}" for change in changes if not change.source]
    if gone:
        await git.run("branch", "--quiet", "--delete", "--remotes", "--", *gone)


def updates(output: str) -> list[RefUpdate]:
    """Parse the output of ``git push --porcelain``."""
    found: list[RefUpdate] = []
    url = ""
    for line in output.splitlines():
        if line.startswith("To "):
            url = line.removeprefix("To ")
        sign, _, rest = line.partition("\t")
        names, _, summary = rest.partition("\t")
        source, colon, target = names.partition(":")
        if len(sign) == 1 and colon:
            found.append(RefUpdate(sign, source, target, url, summary.partition("..")[0]))
    return found


def _split_options(words: Sequence[str]) -> list[str]:
    """The words, each letter of a cluster for itself: ``-nv`` only tells, as ``-n`` does."""
    found: list[str] = []
    for word in words:
        cluster = word.startswith("-") and not word.startswith("--")
        found += [f"-{letter}" for letter in word[1:]] if cluster else [word]
    return found


def _without_quiet(words: Sequence[str]) -> list[str]:
    """The words but for those that would have git say less."""
    return [word for word in words if word not in ("-q", "--quiet")]


async def _default_remote(git: Git) -> str:
    """Return the remote that git pushes to by default."""
    head = (await git.run("symbolic-ref", "-q", "HEAD")).stdout.decode().strip()
    if not head:
        return "origin"
    output = (await git.run("for-each-ref", "--format=%(push:remotename)", head)).stdout.decode().strip()
    return output or "origin"
