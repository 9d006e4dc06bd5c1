"""Names that other programs or earlier versions use for our commands. They are only suggested: each command has one
name.
"""

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
    "policies": ("permissions rules",),
    "dead": ("dead-letters",),
}
"""For each word the commands that it may mean, the most likely first. Of commands that delete, only the mildest is
listed."""


def suggest_command(word: str, names: Collection[str]) -> str | None:
    """Return the command of a group with these names that another name probably means; it may be a subcommand."""
    meant = COMMAND_SYNONYMS.get(word, ())
    return next((name for name in meant if name.partition(" ")[0] in names), None)
