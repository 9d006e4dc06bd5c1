"""The commands of ``trunkline memory``. The module of a verb is named like the verb."""

import click

from trunkline.cli.command import LazyGroup

EXAMPLES = """
trunkline memory add ~/notes
trunkline memory search "climbing frame"
trunkline memory history preferences.toml
trunkline memory blame MEMORY.md
trunkline memory revert MEMORY.md
trunkline memory recall "where does Anna work"
trunkline memory export everything.tar
"""

VERBS: dict[str, str] = {
    "add": "Bring files into memory, under documents/.",
    "watch": "Bring the files of a folder as they change, until Ctrl-C.",
    "search": "Search memory, best first.",
    "list": "List the names under a folder of memory.",
    "show": "Print a file of memory.",
    "history": "Show what changed a file or folder, newest first.",
    "diff": "Show what differs between two versions.",
    "blame": "Show who wrote each line of a file.",
    "revert": "Take back a change.",
    "remember": "Keep a text as chunks.",
    "recall": "Look for what was remembered, best first.",
    "link": "Link chunks by hand.",
    "forget": "Take a chunk out; history keeps it.",
    "chunks": "List, show, change, archive and restore chunks.",
    "purge": "Take something out of all of history, for good.",
    "doctor": "Look whether memory is whole, and mend it.",
    "export": "Write all of memory, history included, to a file.",
    "stats": "Say what the search index holds.",
    "reindex": "Make the search index anew.",
    "import": "Bring in another memory, of Trunkline or of another system.",
}
"""The verbs in the order of the help, with the line that the help shows without importing them."""


@click.group(cls=LazyGroup, package=__name__, table=VERBS, examples=EXAMPLES)
def command() -> None:
    """Bring files into memory, search and read it, see its history, take it all along.

    Paths are relative to the memory root, such as AGENT.md or blocks/main/memory.md.
    """
