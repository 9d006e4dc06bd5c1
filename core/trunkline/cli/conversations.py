"""``trunkline conversations``: list conversations, rename, pin or archive one, show its branches, and continue one in
this terminal.
"""

from typing import TYPE_CHECKING

import click

from trunkline.cli import conversation_export
from trunkline.cli.attached_gateway import with_gateway
from trunkline.cli.command import Group
from trunkline.cli.completion_types import BlockName, ConversationName

if TYPE_CHECKING:
    from trunkline.contracts.conversations.branch import ConversationBranches
    from trunkline.contracts.conversations.messages import ConversationPage, ConversationSummary
    from trunkline.contracts.gateway.client import GatewayClient

EXAMPLES = """
trunkline conversations list
trunkline conversations list --block garden --search beans
trunkline conversations open 2
trunkline conversations open conv_3nvwn
trunkline conversations rename last Beans for next year
trunkline conversations pin last
trunkline conversations archive 3
trunkline conversations export last beans.md
"""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """List, rename, pin, archive, export and open conversations.

    A command names a conversation by its number in the list, its id, the beginning of the id, or "last". "last" is the
    conversation that was answered last.
    """


@command.command(
    "list",
    examples="trunkline conversations list --search beans\ntrunkline conversations list --pinned\n"
    "trunkline conversations list --archived --json",
)
@click.option("--block", type=BlockName(), help="Only items of this block.")
@click.option("--search", help="Only conversations with these words in the title or the text.")
@click.option("--pinned", is_flag=True, help="Only pinned conversations.")
@click.option(
    "--archived", is_flag=True, help="Also list archived conversations. A search finds them anyway."
)
@click.option(
    "--limit",
    type=click.IntRange(1, 100),
    default=20,
    show_default=True,
    help="The largest number of results.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_conversations(
    block: str | None, search: str | None, pinned: bool, archived: bool, limit: int, as_json: bool
) -> None:
    """List conversations, the newest first. Numbers refer to the unfiltered list; with an option that filters, use the
    id."""
    from trunkline.cli.output import print_json
    from trunkline.contracts.conversations.messages import ListConversations

    query = ListConversations(
        block=block,
        search=search,
        limit=limit,
        pinned=True if pinned else None,
        archived="include" if archived else None,
    )
    found = with_gateway(lambda gateway: gateway.conversations(query))
    if as_json:
        print_json({"conversations": found.conversations, "total": found.total})
    elif not found.conversations:
        click.echo("There are no conversations.")
    else:
        _print_page(found, numbered=query == ListConversations(limit=limit))


def _print_page(found: "ConversationPage", *, numbered: bool) -> None:
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_table

    rows = [
        (*((str(number),) if numbered else ()), format_local_time(one.updated_at), one.block,
         str(one.message_count), one.id, _marked_title(one))
        for number, one in enumerate(found.conversations, 1)
    ]  # fmt: skip
    print_table(rows, header=(*(("NO",) if numbered else ()), "LAST", "BLOCK", "MESSAGES", "ID", "TITLE"))
    if found.total > len(rows):
        click.echo(f"{found.total - len(rows)} more; see --limit and --search.", err=True)


def _marked_title(one: "ConversationSummary") -> str:
    """Return the title, with the marks behind it."""
    marks = {"pinned": one.pinned, "archived": one.archived, "fork": one.forked_from is not None}
    set_ = ", ".join(name for name, is_set in marks.items() if is_set)
    return " ".join(filter(None, (one.title, f"({set_})" if set_ else "")))


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


def _mark(
    conversation: str, as_json: bool, *, pinned: bool | None = None, archived: bool | None = None
) -> None:
    """Mark a conversation and print its entry."""
    from trunkline.cli.output import print_json, print_text
    from trunkline.cli.references import resolve_conversation

    async def mark(gateway: "GatewayClient") -> "ConversationSummary":
        meant = await resolve_conversation(gateway, conversation, None) or conversation
        return await gateway.mark_conversation(meant, pinned=pinned, archived=archived)

    marked = with_gateway(mark)
    if as_json:
        print_json(marked)
    else:
        print_text(f"{marked.id}: {_marked_title(marked) or 'without a title'}")


@command.command("pin", examples="trunkline conversations pin last\ntrunkline conversations list --pinned")
@click.argument("conversation", type=ConversationName())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def pin_conversation(conversation: str, as_json: bool) -> None:
    """Pin CONVERSATION, so that "trunkline conversations list --pinned" and the web app show it first.

    CONVERSATION is a number or an id from "trunkline conversations", the beginning of an id, or "last".
    """
    _mark(conversation, as_json, pinned=True)


@command.command("unpin", examples="trunkline conversations unpin last")
@click.argument("conversation", type=ConversationName())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def unpin_conversation(conversation: str, as_json: bool) -> None:
    """Undo the pin of CONVERSATION.

    CONVERSATION is a number or an id from "trunkline conversations", the beginning of an id, or "last".
    """
    _mark(conversation, as_json, pinned=False)


@command.command(
    "archive", examples="trunkline conversations archive 3\ntrunkline conversations list --archived"
)
@click.argument("conversation", type=ConversationName())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def archive_conversation(conversation: str, as_json: bool) -> None:
    """Take CONVERSATION off the list. Nothing is deleted: a search finds it, and a new message puts it back.

    CONVERSATION is a number or an id from "trunkline conversations", the beginning of an id, or "last".
    """
    _mark(conversation, as_json, archived=True)


@command.command("restore", examples="trunkline conversations restore conv_3nvwn")
@click.argument("conversation", type=ConversationName())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def restore_conversation(conversation: str, as_json: bool) -> None:
    """Put an archived CONVERSATION back on the list.

    CONVERSATION is an id from "trunkline conversations list --archived", or the beginning of one.
    """
    _mark(conversation, as_json, archived=False)


@command.command("branches", examples="trunkline conversations branches last")
@click.argument("conversation", type=ConversationName())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_branches(conversation: str, as_json: bool) -> None:
    """Show where CONVERSATION and its forks part, each place with the conversations that go on from there.

    CONVERSATION is a number or an id from "trunkline conversations", the beginning of an id, or "last".
    """
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_json, print_table
    from trunkline.cli.references import resolve_conversation

    async def read(gateway: "GatewayClient") -> "ConversationBranches":
        return await gateway.branches(await resolve_conversation(gateway, conversation, None) or conversation)

    found = with_gateway(read)
    if as_json:
        print_json(found)
        return
    if not found.points:
        click.echo("The conversation has no branches.")
        return
    titles = {one.id: one.title or "" for one in found.family}
    rows = [
        (f"{at}/{len(point.branches)}", point.turn, format_local_time(one.written_at), one.conversation,
         titles[one.conversation])
        for point in found.points
        for at, one in enumerate(point.branches, 1)
    ]  # fmt: skip
    print_table(rows, header=("BRANCH", "TURN", "WRITTEN", "ID", "TITLE"))


command.add_command(conversation_export.command, "export")
