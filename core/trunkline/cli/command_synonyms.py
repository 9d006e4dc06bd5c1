"""Words that other programs have for what a command does here. Each command has one name; these are only suggested."""

from collections.abc import Collection

COMMAND_SYNONYMS: dict[str, tuple[str, ...]] = {
    "log": ("history", "audit"),
    "logs": ("history", "audit"),
    "ls": ("list",),
    "ps": ("list", "top"),
    "all": ("list",),
    "status": ("list", "doctor"),
    "cat": ("show",),
    "get": ("show",),
    "view": ("show",),
    "info": ("show",),
    "inspect": ("show",),
    "describe": ("show",),
    "grep": ("search",),
    "find": ("search",),
    "annotate": ("blame",),
    "undo": ("revert",),
    "rollback": ("revert",),
    "rm": ("remove", "forget", "archive"),
    "delete": ("remove", "forget", "archive"),
    "uninstall": ("remove",),
    "mv": ("rename",),
    "title": ("rename",),
    "name": ("rename",),
    "resume": ("open", "start"),
    "continue": ("open",),
    "chat": ("open",),
    "make": ("create", "new", "add"),
    "new": ("create", "add"),
    "create": ("add", "new"),
    "edit": ("set",),
    "change": ("set",),
    "kill": ("stop",),
    "yes": ("approve",),
    "allow": ("approve",),
    "no": ("deny",),
    "reject": ("deny",),
    "serve": ("up",),
    "start": ("up",),
    "ask": ("say",),
    "send": ("say",),
    "setup": ("init",),
    "settings": ("config",),
    "check": ("doctor",),
}
"""For each word the commands that may be meant, the likeliest first; of those that take something away the mildest."""


def suggest_command(word: str, names: Collection[str]) -> str | None:
    """The command of a group that has these names which somebody means by a word of another program."""
    return next((name for name in COMMAND_SYNONYMS.get(word, ()) if name in names), None)
