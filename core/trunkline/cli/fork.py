"""``trunkline fork TURN@STEP``: starts a new conversation from a step of a turn."""

import sys
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.cli.turn_printer import TurnPrinter
    from trunkline.contracts.gateway.messages import ForkTurn

EXAMPLES = """
trunkline fork last@0 --model openai/gpt-5.5
trunkline fork turn_01JD3V9Q8W7X6Y5Z4A3B2C1D0E@2
trunkline fork last@1 --message "Use the other file." --json
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("place", metavar="last|TURN@STEP")
@click.option("--model", help="The model that answers. Default: the turn's own model.")
@click.option("--message", "content", help="The message to send, after everything before the step.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object when the turn has ended.")
@click.option(
    "--stream/--no-stream", default=None, help="Print text as it arrives. Default: on a terminal only."
)
def command(place: str, model: str | None, content: str | None, as_json: bool, stream: bool | None) -> int:
    """Repeat a TURN from one of its STEPs, in a new conversation.

    The new conversation begins with everything before that step: the conversation so far, and the recorded answers and
    tool results of earlier steps. None of it is asked or run again, and the original turn does not change. STEP is the
    number that "trunkline replay TURN" and "trunkline trace TURN" show. 0 repeats the turn's own question. The number
    after the last step continues from the end and needs --message.

    The output and the exit status are those of "trunkline say".
    """
    from trunkline.cli.aio import run
    from trunkline.cli.turn_printer import JsonTurnPrinter, TurnPrinter
    from trunkline.contracts.gateway.messages import ForkTurn

    turn, at, step = place.rpartition("@")
    if not at or not turn or not step.isdecimal():
        raise click.UsageError(f"{place!r} is not of the form TURN@STEP, such as last@0.")
    streams = sys.stdout.isatty() if stream is None else stream
    request = ForkTurn(turn=turn, step=int(step), content=content, model=model)
    return run(_fork, request, JsonTurnPrinter() if as_json else TurnPrinter(stream=streams))


async def _fork(request: "ForkTurn", printer: "TurnPrinter") -> int:
    from msgspec.structs import replace

    from trunkline.cli.log_file import log_to_file
    from trunkline.cli.references import resolve_turn
    from trunkline.cli.say import CHANNEL, follow_turn
    from trunkline.config import load_config
    from trunkline.contracts.gateway.client import GatewayClient
    from trunkline.runtime.platform_connection import connect_to_platform
    from trunkline.workers import load_worker

    config = load_config()
    with log_to_file(config, "fork"):
        async with connect_to_platform(config, load_worker, name="fork") as bus:
            gateway = GatewayClient(bus, CHANNEL)
            accepted = await gateway.fork(replace(request, turn=await resolve_turn(bus, request.turn)))
            return await follow_turn(gateway, accepted, printer)
