"""``trunkline context CONVERSATION``: what a model was sent in a turn, and how much of it each part is."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.attached_gateway import CHANNEL
from trunkline.cli.command import Command
from trunkline.cli.completion_types import ConversationName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunkline.contracts.conversations.messages import Message
    from trunkline.contracts.turns.context_view import ContextView
    from trunkline.contracts.turns.messages import TurnRequested
    from trunkline_bus import Bus

EXAMPLES = """
trunkline context last
trunkline context 2 --text
trunkline context last --turn turn_01JD3V9Q8W7X6Y5Z4A3B2C1D0E --json
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("conversation", type=ConversationName())
@click.option("--turn", help="The turn. Default: the last turn that asked a model.")
@click.option("--text", "texts", is_flag=True, help="Also print the text of each part.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --text the parts have their texts.")
def command(conversation: str, turn: str | None, texts: bool, as_json: bool) -> None:
    """Show what the model saw in the last turn of CONVERSATION, and the tokens of each part.

    CONVERSATION is a number or an id from "trunkline conversations", the beginning of an id, or "last". The turn's
    journal has the context and the tools; memory has the history. The vendor counted the tokens of the whole and of the
    cached part; those of a part are estimated. Of tools only the size of the definition is recorded.
    """
    from functools import partial

    from trunkline.cli.attached_workers import with_workers
    from trunkline.cli.output import fit_text, print_json, print_text
    from trunkline.workers.channels.context_text import describe_context, describe_texts

    view = with_workers(partial(_view, conversation, turn, texts), "gateway", "memory")
    if as_json:
        print_json(view)
        return
    print_text(fit_text(describe_context(view)))
    if texts:
        print_text(f"\n{describe_texts(view)}")


async def _view(conversation: str, turn: str | None, texts: bool, bus: "Bus") -> "ContextView":
    """Build the view in this process, so that no monitor is started, which would run turns."""
    from trunkline.cli.references import resolve_conversation, resolve_turn
    from trunkline.config import load_config
    from trunkline.contracts.gateway.client import GatewayClient
    from trunkline.contracts.turns.context_view import GetContext
    from trunkline.errors import TrunklineError
    from trunkline.runtime.context_window import ContextWindows
    from trunkline.workers.monitor.context_builder import ContextBuilder
    from trunkline.workers.monitor.context_view_handler import ContextViewer
    from trunkline_bus import Refusal

    gateway, settings = GatewayClient(bus, CHANNEL), load_config().settings
    meant = await resolve_conversation(gateway, conversation, None) or conversation

    async def load(request: "TurnRequested") -> "Sequence[Message]":
        return (await gateway.conversation(meant, include_tools=True)).messages

    builder = ContextBuilder(bus, (), settings.monitor, ContextWindows(settings))
    asked = GetContext(conversation=meant, turn=await resolve_turn(bus, turn) if turn else None, texts=texts)
    try:
        return await ContextViewer(bus, builder, load).view(asked)
    except Refusal as refusal:
        raise TrunklineError(
            refusal.message, hint='"trunkline conversations" lists the conversations.'
        ) from None
