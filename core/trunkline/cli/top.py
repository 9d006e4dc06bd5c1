"""``trunkline top``: a live overview of the platform. ``runtime.overview`` collects the data."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from datetime import datetime

    from rich.console import Group as Shown

    from trunkline.config import Config
    from trunkline.contracts.models.circuits import Circuit
    from trunkline.contracts.models.key_pools import KeyPool, PooledKey
    from trunkline.contracts.workers.messages import WorkerHeartbeat
    from trunkline.runtime.overview import PartitionState, PlatformOverview
    from trunkline_bus.streams.admin import StreamState

EXAMPLES = """
trunkline top
trunkline top --once
trunkline top --once --json
trunkline top --json --minutes 15
"""

REFRESH_SECONDS = 1.0

if TYPE_CHECKING:
    ReadOverview = Callable[[], Awaitable[PlatformOverview]]
    Rows = Sequence[tuple[str, ...]]


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--once", is_flag=True, help="Print one snapshot. This is the default without a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; without --once, one line each second.")
@click.option("--minutes", type=click.FloatRange(0.1, 10_000), default=5.0, show_default=True,
              help="The period in which turns and errors are counted.")  # fmt: skip
def command(once: bool, as_json: bool, minutes: float) -> None:
    """Watch the running platform: workers, running and waiting turns by lane, owners of partitions, waiting messages
    and their age, running and recently failed turns, models that fail, keys of vendors, stream usage, and dead letters.

    Ctrl-C ends the display.
    """
    import sys

    from trunkline.cli.aio import run
    from trunkline.config import load_config

    config = load_config()
    live = not once and (as_json or sys.stdout.isatty())
    if live:
        _must_run(config)
    run(_top, config, live, as_json, minutes)


def _must_run(config: "Config") -> None:
    """Require a running platform. The display does not start a platform, because that would prevent another start on
    this home.
    """
    from trunkline.errors import Unavailable
    from trunkline.home.paths import Home
    from trunkline.home.run_file import running_pid

    if config.settings.bus.url is None and running_pid(Home.of(config)) is None:
        raise Unavailable(
            f"Nothing runs on {config.home}.",
            hint='Start it with "trunkline up", or print one snapshot with --once.',
        )


async def _top(config: "Config", live: bool, as_json: bool, minutes: float) -> None:
    from trunkline.home.kill_switch import KillSwitch
    from trunkline.runtime.overview import OverviewReader
    from trunkline.runtime.platform_connection import connect_to_platform
    from trunkline.workers import load_worker

    async with connect_to_platform(config, load_worker, name="top", kinds=()) as bus:
        lookout = OverviewReader(bus, minutes=minutes, kill_switch=KillSwitch(config.home))
        if not live:
            _print(await lookout.read(), as_json)
        elif as_json:
            await _lines(lookout.read)
        else:
            await _screen(lookout.read)


async def _lines(read: "ReadOverview") -> None:
    import anyio
    import msgspec

    while True:
        click.echo(msgspec.json.encode(await read()).decode())
        await anyio.sleep(REFRESH_SECONDS)


async def _screen(read: "ReadOverview") -> None:
    import anyio
    from rich.live import Live
    from rich.text import Text

    from trunkline_bus import BusError

    with Live(screen=True, auto_refresh=False) as screen:
        while True:
            try:
                with anyio.fail_after(REFRESH_SECONDS * 5):
                    screen.update(_drawn(await read()), refresh=True)
            except (BusError, TimeoutError) as error:
                screen.update(Text(f"The bus does not answer; retrying. ({error})"), refresh=True)
            await anyio.sleep(REFRESH_SECONDS)


def _print(seen: "PlatformOverview", as_json: bool) -> None:
    from trunkline.cli.output import print_json, print_table

    if as_json:
        return print_json(seen)
    click.echo(_summary(seen))
    for title, header, rows in _tables(seen):
        click.echo(f"\n{title}")
        print_table(rows, header=header)


def _drawn(seen: "PlatformOverview") -> "Shown":
    from rich.console import Group as Shown
    from rich.table import Table
    from rich.text import Text

    parts: list[Table | Text] = [Text(_summary(seen), style="bold red" if seen.lately.failed else "bold")]
    for title, header, rows in _tables(seen):
        drawn = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="dim")
        for name in header:
            drawn.add_column(name)
        for row in rows:
            drawn.add_row(*map(Text, row))
        parts += [Text(), drawn]
    return Shown(*parts)


def _summary(seen: "PlatformOverview") -> str:
    from trunkline._util.local_time import format_local_time

    lately = seen.lately
    panic = f"STOPPED BY PANIC since {seen.panic}: trunkline panic --release\n" if seen.panic else ""
    return (
        f"{panic}{format_local_time(seen.time, seconds=True)}  nats-server {seen.server}  in flight {seen.in_flight}  "
        f"waiting {seen.waiting}  dead letters {seen.dead_letters}\n"
        f"last {lately.minutes:g} minutes: {lately.started} begun, {lately.finished} ended, "
        f"{lately.parked} parked, {lately.failed} failed"
    )


def _tables(seen: "PlatformOverview") -> "Iterator[tuple[str, Sequence[str], Rows]]":
    from trunkline._util.text import printable

    holders = {pin: beat.id for beat in seen.workers for pin in beat.pins.values()}
    workers = [_worker(beat, seen.time) for beat in seen.workers] or [("none", *[""] * 5)]
    partitions = [_partition(one, holders) for one in seen.partitions]
    streams = [_stream(one, seen.time) for one in seen.streams]
    yield "WORKERS", ("KIND", "HOST", "PID", "UP", "STATE", "ID"), workers
    if lanes := _lanes(seen.workers):
        yield "LANES", ("LANE", "RUNNING", "WAITING"), lanes
    yield "INBOX", ("PART", "WAITS", "WITH MONITOR", "CONVERSATIONS", "OLDEST", "MONITOR"), partitions
    if seen.accounts:
        rows = [(one.channel, one.account.state, printable(one.account.text)) for one in seen.accounts]
        yield "CHANNELS", ("CHANNEL", "STATE", "ACCOUNT"), rows
    if seen.circuits:
        models = [_circuit(one, seen.time) for one in seen.circuits]
        yield "MODELS THAT FAILED", ("MODEL", "FAILURES", "LAST FAULT", "CIRCUIT"), models
    if seen.key_pools:
        keys = [_key(pool, key, seen.time) for pool in seen.key_pools for key in pool.keys]
        yield "KEYS", ("ADAPTER", "KEY", "LAST MINUTE", "RUNNING", "WAITING", "STATE"), keys
    yield "STREAMS", ("NAME", "MESSAGES", "SIZE", "AT MOST", "OLDEST", "KEPT FOR"), streams


def _worker(beat: "WorkerHeartbeat", now: "datetime") -> tuple[str, ...]:
    from trunkline._util.text import printable

    up = _span((now - beat.started_at).total_seconds())
    return (
        beat.kind,
        printable(beat.host),
        str(beat.pid),
        up,
        "draining" if beat.draining else "works",
        beat.id,
    )


def _lanes(workers: "Sequence[WorkerHeartbeat]") -> "Rows":
    """Return the turns of each lane that run and wait, of all monitors together."""
    from trunkline.contracts.turns.lanes import LANES

    loads = [load for beat in workers for load in beat.lanes]
    return [
        (lane, str(sum(one.running for one in of_lane)), str(sum(one.waiting for one in of_lane)))
        for lane in LANES
        if (of_lane := [load for load in loads if load.lane == lane])
    ]


def _partition(one: "PartitionState", holders: dict[str, str]) -> tuple[str, ...]:
    oldest = "-" if one.oldest is None else _span(one.oldest)
    holder = holders.get(one.pin, f"pin {one.pin[:8]}") if one.pin else "none"
    waits = one.messages - one.claimed
    return str(one.partition), str(waits), str(one.claimed), str(one.conversations), oldest, holder


def _circuit(one: "Circuit", now: "datetime") -> tuple[str, ...]:
    """Return the row of a model. A circuit whose time is over waits for the next call, the probe."""
    left = (one.open_until - now).total_seconds() if one.open_until is not None else None
    state = "closed" if left is None else f"open for {_span(left)}" if left > 0 else "open until a probe"
    return one.model, str(one.failures), one.fault, state


def _key(pool: "KeyPool", key: "PooledKey", now: "datetime") -> tuple[str, ...]:
    """Return the row of a key, as its monitors saw it when they last used the pool."""
    left = key.rests_until - now.timestamp()
    state = f"rests for {_span(left)} ({key.fault})" if left > 0 else "in use"
    recent = {second: used for second, used in key.slots.items() if second > now.timestamp() - 60}
    used = (
        f"{sum(one for one, _ in recent.values())} requests, {sum(two for _, two in recent.values())} tokens"
    )
    running = sum(expires > now.timestamp() for expires in key.running.values())
    waiting = sum(ticket.expires > now.timestamp() for ticket in pool.waiting)
    return pool.adapter, key.digest, used, str(running), str(waiting), state


def _stream(one: "StreamState", now: "datetime") -> tuple[str, ...]:
    return (
        one.name,
        str(one.messages),
        _size(one.bytes),
        _size(one.max_bytes) if one.max_bytes else "-",
        _span((now - one.first).total_seconds()) if one.first else "-",
        _span(one.max_age) if one.max_age else "until done",
    )


def _span(seconds: float) -> str:
    """Format a duration in at most two units."""
    whole = int(seconds)
    for size, unit, below, name in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            return f"{whole // size}{unit} {whole % size // below}{name}"
    return f"{max(0.0, seconds):.1f}s"


def _size(size: int) -> str:
    return f"{size / 1024 / 1024:.1f} MB"
