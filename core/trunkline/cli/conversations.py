"""``trunkline conversations``: list conversations, name one, and open one in this terminal."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Group
from trunkline.cli.completing import BlockName
from trunkline.cli.with_gateway import with_gateway

if TYPE_CHECKING:
    from trunkline.messages.conversation import ConversationPage, ConversationSummary
    from trunkline.runtime.gateway_client import GatewayClient

EXAMPLES = """
trunkline conversations list
trunkline conversations list --block garden --search beans
trunkline conversations open last
trunkline conversations rename last "Beans for next year"
trunkline conversations open conv_01J9ZQ6T4M3W5N8R2K7V0XYB1D
"""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """List conversations, name one, and open one in this terminal."""


@command.command(
    "list", examples="trunkline conversations list --search beans\ntrunkline conversations list --json"
)
@click.option("--block", type=BlockName(), help="Only those of this block.")
@click.option("--search", help="Only those with these words in their title.")
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_conversations(block: str | None, search: str | None, limit: int, as_json: bool) -> None:
    """List conversations, the newest first."""
    from trunkline.cli.output import json_out, table

    found = _page(block, search, limit)
    if as_json:
        json_out({"conversations": found.conversations, "total": found.total})
        return
    if not found.conversations:
        click.echo("There are no conversations.")
        return
    rows = [
        (f"{one.updated_at.astimezone():%Y-%m-%d %H:%M}", one.block, str(one.message_count), one.id, one.title or "")
        for one in found.conversations
    ]  # fmt: skip
    table(rows, header=("LAST", "BLOCK", "MESSAGES", "ID", "TITLE"))
    if found.total > len(rows):
        click.echo(f"{found.total - len(rows)} more; see --limit and --search.", err=True)


def _page(block: str | None, search: str | None, limit: int) -> "ConversationPage":
    from trunkline.messages.conversation import ListConversations

    query = ListConversations(block=block, search=search, limit=limit)
    return with_gateway(lambda gateway: gateway.conversations(query))


@command.command("open", examples="trunkline conversations open last")
@click.argument("id")
@click.pass_context
def open_conversation(context: click.Context, id: str) -> object:
    """Continue the conversation ID in this terminal; "last" is the one answered last. The same as
    "trunkline chat --conversation ID"."""
    from trunkline.cli.chat import command as chat

    return context.invoke(chat, block=None, conversation=id, channel="terminal")


@command.command(
    "rename",
    examples='trunkline conversations rename last "Beans for next year"\ntrunkline conversations rename last --made',
)
@click.argument("id")
@click.argument("title", required=False)
@click.option("--made", is_flag=True, help="Take the title back: it is made from what was said first.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rename_conversation(id: str, title: str | None, made: bool, as_json: bool) -> None:
    """Give the conversation ID a TITLE of yours, which stays; "last" is the one answered last."""
    from trunkline.cli.last import conversation_named
    from trunkline.cli.output import json_out

    if (title is None) != made:
        raise click.UsageError("Give a TITLE, or --made.")

    async def rename(gateway: "GatewayClient") -> "ConversationSummary":
        conversation = await conversation_named(gateway, id, None) or id
        return await gateway.rename_conversation(conversation, title)

    renamed = with_gateway(rename)
    if as_json:
        json_out(renamed)
    else:
        click.echo(f"{renamed.id}: {renamed.title or 'without a title'}")
