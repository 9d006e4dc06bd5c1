"""``trunkline dead-letters``: messages that no worker could read or handle."""

from typing import TYPE_CHECKING, Any, TypeVar

import click

from trunkline.cli.command import Group
from trunkline.cli.confirmation import confirm

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trunkline.runtime.dead_letters import StoredDeadLetter
    from trunkline_bus import Bus

T = TypeVar("T")

EXAMPLES = """
trunkline dead-letters list
trunkline dead-letters show 12
trunkline dead-letters retry 12
trunkline dead-letters clear --all
"""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """Show messages that no worker could read or handle, send them again, or delete them."""


@command.command("list", examples="trunkline dead-letters list\ntrunkline dead-letters list --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_letters(as_json: bool) -> None:
    """List the dead letters, oldest first. They are kept for 30 days."""
    from trunkline.cli.output import print_json, print_table
    from trunkline.runtime.dead_letters import list_dead_letters

    found = _on_bus(list_dead_letters)
    if as_json:
        print_json([_facts(one) for one in found])
    elif not found:
        click.echo("There are no dead letters.")
    else:
        rows = [_row(one) for one in found]
        print_table(rows, header=("ID", "STORED", "BYTES", "REASON", "SUBJECT"))


@command.command("show", examples="trunkline dead-letters show 12\ntrunkline dead-letters show 12 --json")
@click.argument("number", metavar="ID", type=int)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_letter(number: int, as_json: bool) -> None:
    """Show one dead letter: the reason, whether it can be sent again, and the message itself."""
    from trunkline.cli.output import print_json, print_table

    one, refusal = _on_bus(lambda bus: _looked_at(bus, number))
    shape, text = one.readable_body()
    if as_json:
        print_json(
            {**_facts(one), "retry": refusal is None, "refused": refusal, "shape": shape, "message": text}
        )
        return
    print_table([(name, str(value)) for name, value in _facts(one).items()])
    click.echo(f"{'retry':<10}{'yes' if refusal is None else refusal}")
    click.echo(f"\n{text if one.is_complete else text + chr(10) + '(the rest was not stored)'}")


@command.command(
    "retry", examples="trunkline dead-letters retry 12 13\ntrunkline dead-letters retry --all --json"
)
@click.argument("numbers", metavar="[ID]...", type=int, nargs=-1)
@click.option("--all", "all_of_them", is_flag=True, help="Send all that can be sent again.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def retry_letters(numbers: tuple[int, ...], all_of_them: bool, as_json: bool) -> int:
    """Send messages again, byte for byte, to their original subject.

    Only inbox messages can be sent again: what a person wrote, steered, cancelled or decided. A message sent again
    comes after those sent since. A turn that is done does not run twice. Other messages are refused with the reason.
    The exit status is 1 when a message named by its ID is refused.
    """
    from trunkline.cli.output import print_json

    done = _on_bus(lambda bus: _retried(bus, _wanted(numbers, all_of_them), all_of_them))
    if as_json:
        print_json([{"id": number, "sent": refusal is None, "refused": refusal} for number, refusal in done])
    else:
        for number, refusal in done:
            click.echo(f"Sent {number} again." if refusal is None else refusal, err=refusal is not None)
    return 1 if numbers and any(refusal for _, refusal in done) else 0


@command.command(
    "clear", examples="trunkline dead-letters clear 12 13\ntrunkline dead-letters clear --all --yes"
)
@click.argument("numbers", metavar="[ID]...", type=int, nargs=-1)
@click.option("--all", "all_of_them", is_flag=True, help="Delete all dead letters.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def clear_letters(numbers: tuple[int, ...], all_of_them: bool, yes: bool, as_json: bool) -> None:
    """Delete dead letters permanently."""
    from trunkline.cli.output import print_json

    _wanted(numbers, all_of_them)
    if not yes:
        confirm(f"Delete {'all dead letters' if all_of_them else f'{len(numbers)} of them'}?", done="deleted")
    gone = _on_bus(lambda bus: _cleared(bus, numbers, all_of_them))
    if as_json:
        print_json({"cleared": gone})
    else:
        click.echo(f"Deleted {len(gone)} of them." if gone else "There are no dead letters.")


def _wanted(numbers: tuple[int, ...], all_of_them: bool) -> tuple[int, ...]:
    if bool(numbers) == all_of_them:
        raise click.UsageError("Give the ids of dead letters, or --all.")
    return numbers


def _on_bus(ask: "Callable[[Bus], Awaitable[T]]") -> "T":
    """Run ``ask`` on the bus of the running instance, or on one that is started for this purpose."""
    from trunkline.cli.aio import run

    return run(lambda: _asked(ask))


async def _asked(ask: "Callable[[Bus], Awaitable[T]]") -> "T":
    from trunkline.config import load_config
    from trunkline.runtime.platform_connection import connect_to_platform
    from trunkline.workers import load_worker

    async with connect_to_platform(load_config(), load_worker, kinds=()) as bus:
        return await ask(bus)


async def _looked_at(bus: "Bus", number: int) -> "tuple[StoredDeadLetter, str | None]":
    from trunkline.errors import TrunklineError
    from trunkline.runtime.dead_letters import check_retriable, find_dead_letters

    one = (await find_dead_letters(bus, (number,)))[0]
    try:
        await check_retriable(bus, one)
    except TrunklineError as error:
        return one, error.sentence
    return one, None


async def _retried(bus: "Bus", numbers: tuple[int, ...], all_of_them: bool) -> list[tuple[int, str | None]]:
    from trunkline.errors import TrunklineError
    from trunkline.runtime.dead_letters import find_dead_letters, retry

    done: list[tuple[int, str | None]] = []
    for one in await find_dead_letters(bus, numbers, all_of_them=all_of_them):
        try:
            await retry(bus, one)
        except TrunklineError as error:
            done.append((one.id, error.sentence))
        else:
            done.append((one.id, None))
    return done


async def _cleared(bus: "Bus", numbers: tuple[int, ...], all_of_them: bool) -> list[int]:
    from trunkline.contracts.workers.subjects import DEAD_LETTER_TOPIC
    from trunkline.runtime.dead_letters import find_dead_letters

    there = await find_dead_letters(bus, numbers, all_of_them=all_of_them)
    for one in there:
        await bus.delete(DEAD_LETTER_TOPIC, one.id)
    return [one.id for one in there]


def _row(one: "StoredDeadLetter") -> tuple[str, ...]:
    from trunkline._util.local_time import format_local_time
    from trunkline._util.text import printable

    letter = one.letter
    return (
        str(one.id),
        format_local_time(one.time, seconds=True),
        str(letter.size),
        printable(letter.reason),
        printable(letter.subject),
    )


def _facts(one: "StoredDeadLetter") -> dict[str, Any]:
    from datetime import UTC

    from trunkline._util.text import printable

    letter = one.letter
    return {
        "id": one.id,
        "time": one.time.astimezone(UTC),
        "source": printable(one.source),
        "subject": printable(letter.subject),
        "reason": printable(letter.reason),
        "detail": printable(letter.detail),
        "size": letter.size,
    }
