"""``python -m benchmarks.orchestrator``: a split task of 8 independent steps, at once and one after the other.

A real platform and a scripted model that needs the same time for every request. The task is split twice: into steps
that do not need each other, and into the same steps, each of which needs all earlier ones. Both turns call the model as
often. The last column is the time of the requests that must follow each other.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import anyio

import trunkline
from benchmarks.figures import progress, table
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE
from trunkline.contracts.models.adapter import ModelAdapter, ModelRequest
from trunkline.testing.platform import platform
from trunkline.testing.scripted_model import ScriptedModel

TASK = "Describe each of the harbours of the whole coast, and then compare them all."


@dataclass(frozen=True, slots=True)
class SplitTurn:
    """A turn: its steps, the requests to the model, its seconds, and the seconds of the requests in a row."""

    way: str
    steps: int
    requests: int
    seconds: float
    least: float


class StepVendor:
    """A model that splits the task into ``steps`` steps. With ``in_order`` each step needs all earlier ones."""

    def __init__(self, steps: int, pause: float) -> None:
        self.steps = steps
        self.pause = pause
        self.in_order = False
        self.model = ScriptedModel(self._answer)

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]

    def _answer(self, request: ModelRequest) -> Any:
        if request.purpose == "route":
            return [self.pause, "full"]
        if request.purpose != "split":
            return [self.pause, "A deep harbour."]
        order: dict[str, Any] = {} if self.in_order else {"after": []}
        steps = [
            {"description": f"Describe harbour {n}", "category": "research", **order}
            for n in range(self.steps)
        ]
        return [self.pause, json.dumps(steps)]


async def measure(steps: int, pause: float) -> list[SplitTurn]:
    """Run both turns on one platform."""
    vendor = StepVendor(steps, pause)
    found = []
    async with platform(plugins=[vendor], config={"runtime.provider_adapter": "scripted"}) as running:
        text = f'[router]\non = true\norchestrator = "on"\nmax_steps = {steps}\n'
        await running.bus.call(
            MEMORY_WRITE, WriteMemory(path="preferences.toml", content=text, actor="owner")
        )
        await running.say("hello")
        for vendor.in_order, way in ((False, "at once"), (True, "one after the other")):
            progress(f"{steps} steps, {way}")
            vendor.model.requests.clear()
            begin = anyio.current_time()
            await running.say(TASK)
            in_a_row = 3 + (steps if vendor.in_order else 1)  # route, split, join, and the steps
            seconds = anyio.current_time() - begin
            found.append(
                SplitTurn(way, steps, len(vendor.model.requests), round(seconds, 3), in_a_row * pause)
            )
    return found


def main() -> int:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.orchestrator", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--steps", type=int, default=8, help="independent steps, 2 to 16")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds of each request to the model")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    turns = anyio.run(measure, options.steps, options.pause)
    if options.json:
        print(json.dumps([asdict(turn) for turn in turns]))
        return 0
    rows = [(turn.way, f"{turn.requests}", f"{turn.seconds:.2f} s", f"{turn.least:.2f} s") for turn in turns]
    print(table(("steps", "requests", "turn", "requests in a row"), rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
