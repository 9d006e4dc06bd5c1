"""A tools worker with the sandbox, and repositories in its workspace."""

import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.testing.platform import Platform, platform
from trunkline.testing.tool_calls import assert_audited, call_tool

needs_both = pytest.mark.skipif(
    shutil.which("bwrap") is None or shutil.which("git") is None,
    reason="bubblewrap and git are needed (apt install bubblewrap git)",
)
WHO = ("-c", "user.name=x", "-c", "user.email=x@example.org")


def git(folder: Path, *words: str) -> str:
    """Return the output of this machine's git, outside of the sandbox."""
    done = subprocess.run(
        ["git", *WHO, *words], cwd=folder, check=True, capture_output=True, text=True, env=ALONE
    )
    return done.stdout.strip()


ALONE = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/nonexistent"}


class Place:
    """Calls git of the block ``main``, in a repository ``repo`` with a remote ``remote``, both in the workspace."""

    def __init__(self, running: Platform) -> None:
        self.running = running
        self.workspace = running.home.workspace("main")
        self.repo, self.remote = self.workspace / "repo", self.workspace / "remote"
        self.repo.mkdir(parents=True)
        self.refused: dict[str, str] = {}
        git(self.workspace, "init", "-q", "--bare", "-b", "main", "remote")
        git(self.repo, "init", "-q", "-b", "main")
        git(self.repo, "remote", "add", "origin", "../remote")
        for text in ("one", "two"):
            (self.repo / "file").write_text(text)
            git(self.repo, "add", ".")
            git(self.repo, "commit", "-qm", text)
        git(self.repo, "branch", "feature")
        git(self.repo, "push", "-q", "origin", "main", "feature")

    def rewrite(self) -> None:
        """Replace the last commit of main and of feature here, so that only force brings them to the remote."""
        git(self.repo, "commit", "-q", "--amend", "-m", "rewritten")
        git(self.repo, "branch", "-f", "feature", "main")

    async def rewrite_and_push_topic(self) -> tuple[str, str]:
        """Rewrite main, and push the new commit to another branch. Returns the old and the new commit of main."""
        old = git(self.repo, "rev-parse", "main")
        self.rewrite()
        new = git(self.repo, "rev-parse", "main")
        assert (await self.run("push origin main:topic")).status == "ok"
        return old, new

    def heads(self) -> dict[str, str]:
        """The branches of the remote."""
        reported = git(self.remote, "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads")
        return dict(line.split() for line in reported.splitlines())  # type: ignore[misc]

    async def call(self, name: str, **arguments: Any) -> ToolOutcome:
        """Call a tool, in the repository; a refused call must be in the audit log at the end."""
        said = await call_tool(self.running.bus, name, {"folder": "repo", **arguments})
        if said.status == "error":
            self.refused[said.call] = said.status
        return said

    async def run(self, command: list[str] | str, *, yes: bool = False) -> ToolOutcome:
        """Run git; ``yes``: a person approves it when asked."""
        said = await self.call("git", command=command)
        if yes and said.status == "approval":
            arguments = {"folder": "repo", "command": command}
            return await call_tool(self.running.bus, "git", arguments, approved=said.call_hash)
        return said


@asynccontextmanager
async def place(base: Path, **permissions: Any) -> AsyncIterator[Place]:
    """Start such a worker; without permissions given, programs run without approval."""
    chosen = {"allow_shell": True, "approvals": "none", **permissions}
    config = {f"permissions.{name}": value for name, value in chosen.items()}
    async with platform(base / "home", config=config, workers=("memory", "tools", "gateway")) as running:
        found = Place(running)
        yield found
        await assert_audited(running.bus, found.refused)
