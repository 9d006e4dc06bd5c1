"""Runs git in the sandbox, as its own: what a repository's configuration names is not run where there is a switch."""

from collections.abc import Sequence
from pathlib import Path

from trunkline import SandboxResult, ToolContext
from trunkline_git.settings import GitSettings

HERE = Path(__file__).parent
GIVEN = {f"/etc/trunkline-git/{name}": HERE / name for name in ("gitconfig", "excludes")}

OVER_ALL = {
    "core.fsmonitor": "false",
    "core.sshCommand": "ssh",
    "core.askPass": "",
    "core.editor": "false",
    "sequence.editor": "true",
    "core.pager": "cat",
    "core.excludesFile": "/etc/trunkline-git/excludes",
    "credential.helper": "",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "log.showSignature": "false",
    "protocol.ext.allow": "never",
    "push.recurseSubmodules": "no",
    "safe.bareRepository": "explicit",
}
"""What goes before the configuration of the repository: settings that name programs, and names to leave out."""

READING = frozenset(
    {"diff", "for-each-ref", "log", "ls-files", "show", "status", "symbolic-ref", "whatchanged"}
)
"""Commands for which no hook is run."""

SHOWING = frozenset({"diff", "log", "show", "whatchanged"})
"""Commands that show differences, by programs of the repository unless they are told not to."""


def env(command: str) -> dict[str, str]:
    """The environment of git for a command."""
    over = OVER_ALL | ({"core.hooksPath": "/dev/null"} if command in READING else {})
    made = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/etc/trunkline-git/gitconfig",
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PAGER": "cat",
        "TERM": "dumb",
        "GIT_CONFIG_COUNT": str(len(over)),
    }
    for number, (name, value) in enumerate(over.items()):
        made[f"GIT_CONFIG_KEY_{number}"], made[f"GIT_CONFIG_VALUE_{number}"] = name, value
    return made


class Git:
    """git in a folder of the workspace of a call."""

    def __init__(
        self, context: ToolContext, settings: GitSettings, folder: str = "", network: bool = False
    ) -> None:
        self._context = context
        self._folder = folder
        self.limits = settings.limits(network)
        self.protected = frozenset(map(str.lower, settings.protected))

    async def run(self, *words: str) -> SandboxResult:
        """Run ``git`` with these words. Raises ToolError when there is no sandbox, or no such folder."""
        return await self._context.sandbox.run(
            ("git", *_as_itself(words)),
            workspace=self._context.workspace,
            env=env(words[0]),
            folder=self._context.folder(self._folder),
            read_only=GIVEN,
            limits=self.limits,
        )


def _as_itself(words: Sequence[str]) -> tuple[str, ...]:
    """The words, with those that keep git from having others show differences."""
    if words[:1] and words[0] in SHOWING:
        return (words[0], "--no-ext-diff", "--no-textconv", *words[1:])
    return tuple(words)
