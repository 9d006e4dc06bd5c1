"""``trunkline conversations export``: one conversation with its branches, as a file or on standard output."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.cli.attached_gateway import with_gateway
from trunkline.cli.command import Command
from trunkline.cli.completion_types import ConversationName

if TYPE_CHECKING:
    from trunkline.contracts.gateway.client import GatewayClient
    from trunkline.contracts.gateway.messages import ConversationExport


EXAMPLES = """
trunkline conversations export last
trunkline conversations export 2 beans.md
trunkline conversations export 2 --json
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("conversation", type=ConversationName())
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def command(conversation: str, file: Path | None, as_json: bool) -> None:
    """Write CONVERSATION with all of its branches to a new FILE, or print it.

    The text has every message, the calls of tools with their results, and the names of files. It is Markdown, or JSON
    with --json or if the name of FILE ends in ".json".

    CONVERSATION is a number or an id from "trunkline conversations", the beginning of an id, or "last".
    """
    from trunkline.cli.output import print_done, print_text
    from trunkline.cli.references import resolve_conversation

    wants_json = as_json or (file is not None and file.suffix == ".json")

    async def read(gateway: "GatewayClient") -> "ConversationExport":
        meant = await resolve_conversation(gateway, conversation, None) or conversation
        return await gateway.export_conversation(meant, "json" if wants_json else "markdown")

    exported = with_gateway(read)
    if file is None:
        print_text(exported.text, nl=False)
        return
    _write_new(file, exported.text)
    print_done(f"Wrote {file}.")


def _write_new(file: Path, text: str) -> None:
    """Write a new file that only its owner can read. Raises StorageError."""
    from trunkline.errors import StorageError

    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise StorageError(f"{file} exists already.", hint="Choose another name.") from error
    except OSError as error:
        reason = (error.strerror or "storage failed").lower()
        raise StorageError(f"{file} cannot be written: {reason}.", hint="Choose another place.") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        file.unlink(missing_ok=True)
        reason = (error.strerror or "storage failed").lower()
        raise StorageError(f"{file} cannot be written: {reason}.", hint="Choose another place.") from error
