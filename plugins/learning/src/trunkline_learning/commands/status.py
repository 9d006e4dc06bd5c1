"""``trunkline learning status``: whether it is on, and how much there is."""

from typing import TYPE_CHECKING, Any

import click

from trunkline.api.cli import Command, with_memory

if TYPE_CHECKING:
    from trunkline.api.bus import Bus


@click.command(cls=Command, examples="trunkline learning status\ntrunkline learning status --wait 30 --json")
@click.option(
    "--wait",
    default=0.0,
    metavar="SECONDS",
    help="Wait until no turn waits to be learned from, for at most this time.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(wait: float, as_json: bool) -> None:
    """Show whether learning is on, and how much was learned."""
    from trunkline.api.cli import print_json, print_table

    found = with_memory(lambda bus: _wait_until_settled(bus, wait))
    if as_json:
        print_json(found)
        return
    click.echo(_state(found))
    turns, waiting = found["turns"], found["waiting"]
    click.echo(
        f"Learned from {turns} {'turn' if turns == 1 else 'turns'}; {waiting} {'waits' if waiting == 1 else 'wait'}."
    )
    if found["models"]:
        rows = [
            (
                name,
                str(one["strategies"]),
                str(one["episodes"]),
                str(one["turns"]),
                _went_well(one),
            )
            for name, one in found["models"].items()
        ]
        print_table(rows, header=("MODEL", "STRATEGIES", "EPISODES", "TURNS", "WENT WELL"))


def _state(data: dict[str, Any]) -> str:
    if data["problem"]:
        return f"Learning is off, because its choices cannot be read. {data['problem']}"
    return f"Learning is on; {data['asks']}." if data["on"] else "Learning is off."


def _went_well(model: dict[str, Any]) -> str:
    """Of the turns that somebody or something judged, how many; unknown while none is."""
    judged = model["successful"] + model["failed"]
    successes = f"{model['successful']} of {judged}" if judged else ""
    return (
        ", ".join(filter(None, (successes, f"{model['unknown']} unknown" if model["unknown"] else "")))
        or "unknown"
    )


async def _wait_until_settled(bus: "Bus", seconds: float) -> dict[str, Any]:
    """Return the status once no turn waits, or after the given seconds."""
    import anyio

    with anyio.move_on_after(seconds):
        while await _waiting(bus):  # noqa: ASYNC110 - the server tells nobody when it is given an ack
            await anyio.sleep(0.1)
    return await _collect_status(bus)


async def _waiting(bus: "Bus") -> int:
    from trunkline.api.bus import BusError, consumer_state
    from trunkline.api.turn import FACT_STREAM, LEARNER_CONSUMER

    try:
        state = await consumer_state(bus, FACT_STREAM, LEARNER_CONSUMER.name)
    except BusError:  # it is made when a monitor starts for the first time
        return 0
    return state.waiting + state.ack_pending


async def _collect_status(bus: "Bus") -> dict[str, Any]:
    from trunkline_learning import files, preferences
    from trunkline_learning.merger import LearningPosition
    from trunkline_learning.store import LearningStore

    store = LearningStore(bus)
    choices, problem = preferences.parse_preferences_with_problem(await store.text(preferences.FILE))
    text = await store.text(files.POSITION)
    position = (files.decode(text, LearningPosition) if text else None) or LearningPosition()
    asked = choices.model or "the model that answers"
    return {
        "on": choices.on,
        "problem": problem,
        "asks": f"{asked} is asked, for {choices.max_cost_usd:g} USD a turn at most"
        if choices.uses_model
        else "no model is asked",
        "turns": position.count,
        "waiting": await _waiting(bus),
        "models": {folder: await _model(store, folder) for folder in await store.folders()},
    }


async def _model(store: Any, folder: str) -> dict[str, Any]:
    from trunkline_learning import files
    from trunkline_learning.metrics import ModelMetrics

    text = await store.text(files.metrics_path(folder))
    metrics = (files.decode(text, ModelMetrics) if text else None) or ModelMetrics()
    judged = metrics.successful + metrics.failed
    return {
        "strategies": len((await store.playbook(folder))[0]),
        "episodes": len(await store.episode_days(folder)),
        "turns": metrics.total,
        "successful": metrics.successful,
        "failed": metrics.failed,
        "unknown": max(0, metrics.total - judged),
        "success_rate": metrics.success_rate if judged else None,
        "failure_types": metrics.failure_types,
    }
