"""``trunkline attach``: shows a conversation in this terminal, with what is said through other channels."""

import sys
from typing import TYPE_CHECKING

import click

from trunkline.cli.attached_gateway import with_gateway
from trunkline.cli.command import Command
from trunkline.cli.completion_types import ConversationName

if TYPE_CHECKING:
    from trunkline.contracts.conversations.messages import ConversationPage

EXAMPLES = """
trunkline attach
trunkline attach last
trunkline attach conv_01J9ZQ6T4M3W5N8R2K7V0XYB1D
"""

OFFERED = 10
"""The number of conversations to choose from."""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("conversation", type=ConversationName(), required=False)
def command(conversation: str | None) -> int:
    """Show CONVERSATION in this terminal, with what is said in it through other channels, and continue it.

    A turn that runs is shown from its beginning. You can write, steer the turn and decide about calls, as in "trunkline
    chat". CONVERSATION is a number or an id from "trunkline conversations", the beginning of an id, or "last". Without
    CONVERSATION you choose one of the latest.
    """
    from trunkline.cli.aio import run
    from trunkline.cli.chat import run_chat
    from trunkline.contracts.channels.foreground_channel import TerminalSession

    named = conversation or _chosen()
    return run(run_chat, TerminalSession(None, named, attached=True), "terminal", at_terminal=True)


def _chosen() -> str:
    """Let the person choose one of the latest conversations. Raises TrunklineError where nobody can be asked."""
    from trunkline._util.local_time import format_local_time
    from trunkline._util.text import one_line
    from trunkline.contracts.conversations.messages import ListConversations
    from trunkline.errors import TrunklineError

    if not sys.stdin.isatty():
        raise TrunklineError(
            "Name a conversation: nobody can be asked here.",
            hint='"trunkline attach last" takes the latest one.',
        )
    page: ConversationPage = with_gateway(
        lambda gateway: gateway.conversations(ListConversations(limit=OFFERED))
    )
    found = page.conversations
    if not found:
        raise TrunklineError("There is no conversation yet.", hint='Start one: trunkline say "hello".')
    for number, one in enumerate(found, 1):
        click.echo(
            f"{number:>3}  {format_local_time(one.updated_at)}  {one.block}  {one_line(one.title or one.id)}"
        )
    number = click.prompt("Number", type=click.IntRange(1, len(found)), default=1)
    return found[number - 1].id
