"""``trunkline learning status``: whether it is on, and how much there is."""

from typing import TYPE_CHECKING, Any

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached import with_memory

if TYPE_CHECKING:
    from trunkline import Bus


@click.command(cls=Command, examples="trunkline learning status\ntrunkline learning status --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """Show whether learning is on, and how much was learned."""
    from trunkline.cli.output import json_out, table

    found = with_memory(_look)
    if as_json:
        json_out(found)
        return
    click.echo(f"Learning is {'on' if found['on'] else 'off'}; {found['asks']}.")
    click.echo(f"Learned from {found['turns']} turns; {found['waiting']} wait.")
    if found["models"]:
        rows = [
            (
                name,
                str(one["strategies"]),
                str(one["episodes"]),
                str(one["turns"]),
                f"{one['success_rate']:.0%}",
            )
            for name, one in found["models"].items()
        ]
        table(rows, header=("MODEL", "STRATEGIES", "EPISODES", "TURNS", "WENT WELL"))


async def _look(bus: "Bus") -> dict[str, Any]:
    from trunkline.subjects import FACT_STREAM, LEARNER
    from trunkline_bus import BusError
    from trunkline_bus.operating import consumer_state
    from trunkline_learning import files, preferences
    from trunkline_learning.merging import Position
    from trunkline_learning.shelf import Shelf

    shelf = Shelf(bus)
    choices = preferences.learning_in(await shelf.text(preferences.FILE))
    text = await shelf.text(files.POSITION)
    position = (files.read(text, Position) if text else None) or Position()
    try:
        state = await consumer_state(bus, FACT_STREAM, LEARNER.name)
        waiting = state.waiting + state.held
    except BusError:
        waiting = 0
    asked = choices.model or "the model that answers"
    return {
        "on": choices.on,
        "asks": f"{asked} is asked, for {choices.max_cost_usd:g} USD a turn at most"
        if choices.asks
        else "no model is asked",
        "turns": position.count,
        "waiting": waiting,
        "models": {folder: await _model(shelf, folder) for folder in await shelf.folders()},
    }


async def _model(shelf: Any, folder: str) -> dict[str, Any]:
    from trunkline_learning import files
    from trunkline_learning.metrics import Metrics

    text = await shelf.text(files.metrics_path(folder))
    metrics = (files.read(text, Metrics) if text else None) or Metrics()
    return {
        "strategies": len((await shelf.playbook(folder))[0]),
        "episodes": len(await shelf.episode_days(folder)),
        "turns": metrics.total,
        "successful": metrics.successful,
        "failed": metrics.failed,
        "success_rate": metrics.success_rate,
        "failure_types": metrics.failure_types,
    }
