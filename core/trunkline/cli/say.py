"""``trunkline say``: sends one message, prints its answer, and reports success by the exit status."""

import sys
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.completion_types import ConversationName

if TYPE_CHECKING:
    from trunkline.cli.turn_printer import TurnPrinter
    from trunkline.contracts.channels.channel import Gateway
    from trunkline.contracts.gateway.client import GatewayClient
    from trunkline.contracts.gateway.messages import MessageAccepted, SendMessage

EXAMPLES = """
trunkline say "What is on my list?"
trunkline say "And tomorrow?" --conversation last
cat notes.md | trunkline say -
git diff | trunkline say "Review this:" -
trunkline say "Why?" --model anthropic/claude-haiku-4-5
trunkline say "Count to three" --json | jq -r .answer
"""

CHANNEL = "cli"

DISPLAY_HINT = (
    "Plain text on a command line: Markdown stays as it is written. "
    "Nobody can answer a question in the same run."
)
"""The description of this display for the model."""

STDIN = "-"
"""The argument that stands for standard input."""

ANSWERER_TIMEOUT = 2.0
"""Seconds to wait for the name of the answering model, which is only shown."""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("text", required=False)
@click.argument("piped", metavar="[-]", required=False, type=click.Choice([STDIN]))
@click.option("--block", help="The block in which a new conversation begins.")
@click.option("--conversation", type=ConversationName(),
              help='The conversation to continue, by id or number; "last" is the one answered last.')  # fmt: skip
@click.option("--model", help="The ADAPTER/MODEL that answers this message.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object when the turn has ended.")
@click.option(
    "--stream/--no-stream", default=None, help="Print text as it arrives. Default: on a terminal only."
)
def command(
    text: str | None,
    piped: str | None,
    block: str | None,
    conversation: str | None,
    model: str | None,
    as_json: bool,
    stream: bool | None,
) -> int:
    """Send one message and print the answer. TEXT "-" reads standard input; after a TEXT, "-" adds it to the text.

    The answer goes to standard output. Everything else goes to standard error, with the conversation's id at the end.
    Without --stream, a pipe receives only final text. The exit status is 1 when the turn failed, 3 when it waits for a
    decision (the answer is then added to the conversation later), 130 after Ctrl-C, which cancels the turn.
    """
    from trunkline.cli.aio import run
    from trunkline.cli.turn_printer import JsonTurnPrinter, TurnPrinter
    from trunkline.contracts.gateway.messages import SendMessage
    from trunkline_bus import new_id

    message = SendMessage(
        content=_content(text, piped), block=block, conversation=conversation, client_id=new_id("say"), model=model
    )  # fmt: skip
    streams = sys.stdout.isatty() if stream is None else stream
    return run(_say, message, JsonTurnPrinter() if as_json else TurnPrinter(stream=streams))


def _content(text: str | None, piped: str | None) -> str:
    """Return the message: the text, standard input, or both. Input that was piped in and not asked for is mentioned: it
    may be that of a surrounding loop.
    """
    if text is None:
        hint = " What is piped in is read with: trunkline say -" if not sys.stdin.isatty() else ""
        raise click.UsageError(f"Missing argument 'TEXT'.{hint}")
    parts = [text] if text != STDIN else []
    if STDIN in (text, piped):
        parts.append(sys.stdin.buffer.read().decode("utf-8", "replace"))
    elif _is_piped():
        click.echo(
            "Note: what is piped in is not sent. To send it after the text: trunkline say TEXT -", err=True
        )
    content = "\n\n".join(parts)
    if not content.strip():
        raise click.UsageError("TEXT is empty.")
    return content


def _is_piped() -> bool:
    """Report whether a pipe at standard input has bytes now. Nothing is waited for."""
    import fcntl
    import os
    import stat
    import termios
    from contextlib import suppress

    with suppress(OSError, ValueError):
        number = sys.stdin.fileno()
        if stat.S_ISFIFO(os.fstat(number).st_mode):
            waiting = fcntl.ioctl(number, termios.FIONREAD, bytes(4))
            return int.from_bytes(waiting, sys.byteorder) > 0
    return False


async def _say(message: "SendMessage", printer: "TurnPrinter") -> int:
    from msgspec.structs import replace

    from trunkline.cli.log_file import log_to_file
    from trunkline.cli.references import resolve_conversation
    from trunkline.config import load_config
    from trunkline.contracts.gateway.client import GatewayClient
    from trunkline.runtime.platform_connection import connect_to_platform
    from trunkline.workers import load_worker

    config = load_config()
    with log_to_file(config, "say"):
        async with connect_to_platform(config, load_worker, name="say") as bus:
            gateway = GatewayClient(bus, CHANNEL, shows=DISPLAY_HINT)
            conversation = await resolve_conversation(gateway, message.conversation, message.block)
            message = replace(message, conversation=conversation)
            if message.model is not None:
                await gateway.choose_model(None, message.model)  # checks the name
            await print_answerer(gateway, message, printer)
            return await send_and_follow(gateway, message, printer)


async def print_answerer(gateway: "GatewayClient", message: "SendMessage", printer: "TurnPrinter") -> None:
    """Print which model answers, before the message is sent. Print nothing if the gateway does not answer in time."""
    from contextlib import suppress

    import anyio
    from msgspec.structs import replace

    from trunkline.errors import Unavailable
    from trunkline_bus import RemoteFault

    with anyio.move_on_after(ANSWERER_TIMEOUT), suppress(RemoteFault, Unavailable):
        block = message.block
        if message.conversation is not None:
            block = (await gateway.conversation(message.conversation)).summary.block
        answerer = await gateway.answerer(block)
        if message.model is not None:
            answerer = replace(answerer, label=message.model, problem="")
        printer.print_answerer(answerer)


async def send_and_follow(gateway: "Gateway", message: "SendMessage", printer: "TurnPrinter") -> int:
    """Send the message and print the events of its turn. Return the exit status.

    Raises:
        RemoteFault: the message was refused.
        Unavailable: no gateway answers.
    """
    return await follow_turn(gateway, await gateway.send(message), printer)


async def follow_turn(gateway: "Gateway", accepted: "MessageAccepted", printer: "TurnPrinter") -> int:
    """Print the events of an accepted message's turn. Return the exit status. If this function is interrupted, it
    cancels the turn.
    """
    try:
        async for event in gateway.watch(accepted.conversation, accepted.turn):
            if printer.handle_event(event):
                break
    except BaseException:
        await _give_up(gateway, accepted)
        raise
    return printer.finish(accepted)


async def _give_up(gateway: "Gateway", accepted: "MessageAccepted") -> None:
    """Cancel the turn, because the caller no longer waits for it."""
    import anyio

    from trunkline.errors import Unavailable
    from trunkline_bus import RemoteFault

    with anyio.move_on_after(3.0, shield=True):
        try:
            await gateway.cancel(accepted.turn)
        except (Unavailable, RemoteFault) as error:
            click.echo(f"The turn {accepted.turn} may still run: {error}", err=True)
