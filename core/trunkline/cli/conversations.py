"""``trunkline conversations``: list conversations, rename one, and continue one in this terminal."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.attached_gateway import with_gateway
from trunkline.cli.command import Group
from trunkline.cli.completion_types import BlockName, ConversationName

if TYPE_CHECKING:
    from trunkline.contracts.conversations.messages import ConversationPage, ConversationSummary
    from trunkline.contracts.gateway.client import GatewayClient

EXAMPLES = """
trunkline conversations list
trunkline conversations list --block garden --search beans
trunkline conversations open 2
trunkline conversations open conv_3nvwn
trunkline conversations rename last Beans for next year
"""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """List, rename and open conversations.

    A command names a conversation by its number in the list, its id, the beginning of the id, or "last". "last" is the
    conversation that was answered last.
    """


@command.command(
    "list", examples="trunkline conversations list --search beans\ntrunkline conversations list --json"
)
@click.option("--block", type=BlockName(), help="Only items of this block.")
@click.option("--search", help="Only conversations with these words in the title.")
@click.option(
    "--limit",
    type=click.IntRange(1, 100),
    default=20,
    show_default=True,
    help="The largest number of results.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_conversations(block: str | None, search: str | None, limit: int, as_json: bool) -> None:
    """List conversations, the newest first. Numbers refer to the unfiltered list; with --block or --search, use the
    id."""
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_json, print_table

    found = _page(block, search, limit)
    if as_json:
        print_json({"conversations": found.conversations, "total": found.total})
        return
    if not found.conversations:
        click.echo("There are no conversations.")
        return
    is_whole = block is None and search is None
    rows = [
        (*((str(number),) if is_whole else ()), format_local_time(one.updated_at), one.block,
         str(one.message_count), one.id, one.title or "")
        for number, one in enumerate(found.conversations, 1)
    ]  # fmt: skip
    print_table(rows, header=(*(("NO",) if is_whole else ()), "LAST", "BLOCK", "MESSAGES", "ID", "TITLE"))
    if found.total > len(rows):
        click.echo(f"{found.total - len(rows)} more; see --limit and --search.", err=True)


def _page(block: str | None, search: str | None, limit: int) -> "ConversationPage":
    from trunkline.contracts.conversations.messages import ListConversations

    query = ListConversations(block=block, search=search, limit=limit)
    return with_gateway(lambda gateway: gateway.conversations(query))


@command.command("open", examples="trunkline conversations open last\ntrunkline conversations open 2")
@click.argument("conversation", type=ConversationName())
@click.pass_context
def open_conversation(context: click.Context, conversation: str) -> object:
    """Continue CONVERSATION in this terminal, as "trunkline chat --conversation CONVERSATION" does.

    CONVERSATION is a number or an id from "trunkline conversations", the beginning of an id, or "last".
    """
    from trunkline.cli.chat import command as chat

    return context.invoke(chat, block=None, conversation=conversation, channel="terminal")


@command.command(
    "rename",
    examples="trunkline conversations rename last Beans for next year\ntrunkline conversations rename 2 --made",
)
@click.argument("conversation", type=ConversationName())
@click.argument("title", nargs=-1)
@click.option("--made", is_flag=True, help="Return to the title generated from the first message.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rename_conversation(conversation: str, title: tuple[str, ...], made: bool, as_json: bool) -> None:
    """Give CONVERSATION a TITLE, which replaces the generated one. The title needs no quotation marks.

    CONVERSATION is a number or an id from "trunkline conversations", the beginning of an id, or "last".
    """
    from trunkline.cli.output import print_json
    from trunkline.cli.references import resolve_conversation

    if bool(title) == made:
        raise click.UsageError(
            "Give a TITLE, or --made." if made else f"Give {conversation!r} a TITLE, or --made."
        )

    async def rename(gateway: "GatewayClient") -> "ConversationSummary":
        meant = await resolve_conversation(gateway, conversation, None) or conversation
        return await gateway.rename_conversation(meant, " ".join(title) if title else None)

    renamed = with_gateway(rename)
    if as_json:
        print_json(renamed)
    else:
        click.echo(f"{renamed.id}: {renamed.title or 'without a title'}")
