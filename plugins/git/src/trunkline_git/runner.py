"""Runs git in the sandbox, as its own: what a repository's configuration names is not run where there is a switch."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from trunkline import ToolContext
from trunkline.api.sandbox import SandboxResult
from trunkline_git.settings import GitSettings

HERE = Path(__file__).parent
CONFIG_FILES = {f"/etc/trunkline-git/{name}": HERE / name for name in ("gitconfig", "excludes")}

CONFIG = {
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
"""Settings that override the configuration of the repository: those that name programs, and names to leave out."""

READING = frozenset(
    {"diff", "for-each-ref", "log", "ls-files", "show", "status", "symbolic-ref", "whatchanged"}
)
"""Commands for which no hook is run."""

SHOWING = frozenset({"diff", "log", "show", "whatchanged"})
"""Commands that show differences, and by default run diff programs of the repository."""


def env(command: str) -> dict[str, str]:
    """The environment of git for a command."""
    return env_of(CONFIG | ({"core.hooksPath": "/dev/null"} if command in READING else {}))


def env_of(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of git, with settings that go before those of the repository."""
    made = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/etc/trunkline-git/gitconfig",
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PAGER": "cat",
        "TERM": "dumb",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (name, value) in enumerate(settings.items()):
        made[f"GIT_CONFIG_KEY_{number}"], made[f"GIT_CONFIG_VALUE_{number}"] = name, value
    return made


class PushSource(msgspec.Struct, frozen=True):
    """The source of a push: a repository's object folder, the file of its shallow boundary if it has one, and its
    object format."""

    top: str
    objects: str
    shallow: str
    hashes: str


class Git:
    """git in a folder of the workspace of a call."""

    def __init__(
        self, context: ToolContext, settings: GitSettings, folder: str = "", network: bool = False
    ) -> None:
        self.context = context
        self._folder = folder
        self.limits = settings.limits(network)
        self.protected = frozenset(map(str.lower, settings.protected_branches))

    async def run(self, *words: str) -> SandboxResult:
        """Run ``git`` with these words. Raises ToolError when there is no sandbox, or no such folder."""
        return await self.context.sandbox.run(
            ("git", *_as_itself(words)),
            workspace=self.context.workspace,
            env=env(words[0]),
            folder=self.context.folder(self._folder),
            read_only=CONFIG_FILES,
            limits=self.limits,
        )

    async def push_from(self, source: PushSource, repository: str, *words: str) -> SandboxResult:
        """Run ``git push`` with these words from a repository that is made for it and has only the objects of
        ``source``: none of its settings, hooks or replacements, which any program in the workspace could have written.
        ``repository`` is the bare one that it may change. Raises ToolError."""
        settings = {**CONFIG, "core.commitGraph": "false"}
        return await self.context.sandbox.run(
            ("sh", "-c", PUSH_SCRIPT, "sh", source.hashes, source.shallow, *words),
            workspace=self.context.workspace,
            env={**env_of(settings), "GIT_ALTERNATE_OBJECT_DIRECTORIES": source.objects},
            folder=source.top,
            read_only=CONFIG_FILES,
            limits=replace(self.limits, repository=repository),
        )


PUSH_SCRIPT = """
git init --quiet --bare --template= --object-format="$1" /tmp/push &&
if [ -e "$2" ]; then cp "$2" /tmp/push/shallow; fi &&
shift 2 && exec git --git-dir=/tmp/push push "$@"
"""


def _as_itself(words: Sequence[str]) -> tuple[str, ...]:
    """The words, with those that keep git from having others show differences."""
    if words[:1] and words[0] in SHOWING:
        return (words[0], "--no-ext-diff", "--no-textconv", *words[1:])
    return tuple(words)
