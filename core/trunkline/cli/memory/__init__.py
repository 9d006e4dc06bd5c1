"""The commands of ``trunkline memory``. Each command is the module of that name."""

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
    "add": "Add files to memory, under documents/.",
    "watch": "Add the files of a folder whenever they change, until Ctrl-C.",
    "search": "Search memory, best first.",
    "list": "List the files in a folder of memory.",
    "show": "Print a file of memory.",
    "history": "Show the changes of a file or folder, newest first.",
    "diff": "Show the differences between two versions.",
    "blame": "Show who wrote each line of a file.",
    "revert": "Undo a change.",
    "remember": "Store a text as chunks.",
    "recall": "Search the chunks, best first.",
    "link": "Link two chunks.",
    "forget": "Remove a chunk; history keeps it.",
    "chunks": "List, show, change, archive and restore chunks.",
    "purge": "Permanently remove something from memory and all of its history.",
    "doctor": "Check memory for damage and repair it.",
    "export": "Write all of memory with its history to a file.",
    "stats": "Show the contents of the search index.",
    "reindex": "Rebuild the search index.",
    "import": "Import the memory of another Trunkline or of another system.",
}
"""The verbs in the order of the help, with the line that the help shows without importing them."""


@click.group(cls=LazyGroup, package=__name__, table=VERBS, examples=EXAMPLES)
def command() -> None:
    """Add files to memory, search and read it, show its history, export and import it.

    Paths are relative to the memory root, such as AGENT.md or blocks/main/memory.md.
    """
