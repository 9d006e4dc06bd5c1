"""``trunkline replay TURN``: replays a recorded turn offline."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.workers.monitor.journal import RawRecord
    from trunkline.workers.monitor.replay import ReplayedRecord, ReplayReport
    from trunkline_bus import Bus, StoredMessage

EXAMPLES = """
trunkline replay last
trunkline replay turn_01JD3V9Q8W7X6Y5Z4A3B2C1D0E --text
trunkline replay last --json
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("turn", metavar="last|TURN")
@click.option("--text", "with_text", is_flag=True, help="Also print the text that people saw.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(turn: str, with_text: bool, as_json: bool) -> int:
    """Replay a recorded TURN from its journal. No model is called, no tool runs, nothing is written.

    The turn's state machine receives the recorded events one by one and must make the same decisions, byte for byte.
    Then the feed is built again, from the state machine and from the journal, and both are compared with the stored
    feed if it still exists. The exit status is 1 when anything differs.
    """
    import msgspec

    from trunkline.cli.aio import run
    from trunkline.cli.output import print_json

    done = run(_replay, turn)
    if as_json:
        shown = msgspec.to_builtins(done)
        if not with_text:
            del shown["text"]
        print_json({**shown, "same": done.same, "characters": len(done.text)})
    else:
        _print(done, with_text)
    return 0 if done.same else 1


async def _replay(turn: str) -> "ReplayReport":
    from trunkline.config import load_config
    from trunkline.contracts.turns.subjects import FEED
    from trunkline.runtime.platform_connection import connect_to_platform
    from trunkline.workers import load_worker
    from trunkline.workers.monitor.replay import replay

    async with connect_to_platform(load_config(), load_worker, kinds=()) as bus:
        records = await _journal(bus, turn)
        keys = records[0].keys
        feed = [stored.data async for stored in bus.history(FEED, after=0, **keys)]
    return replay(keys["turn"], [record.data for record in records], feed)


async def _journal(bus: "Bus", turn: str) -> "list[StoredMessage[RawRecord]]":
    from trunkline.cli.references import last_journal_record
    from trunkline.workers.monitor.journal import RAW_JOURNAL

    last = await last_journal_record(bus, turn)
    return [stored async for stored in bus.history(RAW_JOURNAL, after=0, **last.keys)]


def _print(done: "ReplayReport", with_text: bool) -> None:
    from trunkline._util.text import printable
    from trunkline.cli.output import print_table

    click.echo(f"turn {done.turn}  {len(done.records)} records, {done.phase}")
    rows = [
        (
            str(number),
            str(one.epoch),
            "-" if one.step is None else str(one.step),
            "same" if one.same else "DIFFERS",
            ", ".join(one.commands),
            _entries(one),
        )
        for number, one in enumerate(done.records, 1)
    ]
    print_table(rows, header=("RECORD", "EPOCH", "STEP", "BYTES", "THEN", "ENTRIES"))
    checks = (
        ("entries", done.entries_same),
        ("end", done.end_same),
        ("messages", done.messages_same),
        ("feed", done.feed_same),
    )
    words = {True: "same", False: "DIFFERS", None: "nothing to compare"}
    click.echo("  ".join(f"{name}: {words[same]}" for name, same in checks))
    if with_text:
        click.echo(f"\n{printable(done.text)}")


def _entries(one: "ReplayedRecord") -> str:
    from trunkline._util.text import printable

    return printable(", ".join(one.entries) + (f" ({one.problem})" if one.problem else ""))
