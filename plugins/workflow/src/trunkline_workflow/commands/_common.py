"""The options of the commands, their requests to the platform, and the text of a run. Contains no command."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from trunkline_workflow.definition import Definition
    from trunkline_workflow.runs import Runs, RunView

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

ALL_WORKERS = ("gateway", "monitor", "tools", "memory")

block_option = click.option("--block", default="main", show_default=True, help="The block.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
wait_option = click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="Wait until the run ends or needs a person. Without a running platform, run one as long as that.",
)
run_argument = click.argument("run", metavar="last|RUN")


def with_runs(block: str, job: "Callable[[Runs], Awaitable[T]]", *, run_turns: bool = False) -> T:
    """Return the result of ``job``, called with the runs of a block. With ``run_turns`` a platform that is started for
    the command also runs turns."""
    from trunkline.api.cli import with_workers
    from trunkline_workflow.runs import Runs

    kinds: tuple[Any, ...] = ALL_WORKERS if run_turns else ("gateway", "memory")
    return with_workers(lambda bus: job(Runs(bus, block)), *kinds, log="workflows" if run_turns else "")


def parse_or_fail(text: str, what: str) -> "Definition":
    """Return the workflow of a text. Raises TrunklineError that lists the mistakes."""
    from trunkline import TrunklineError
    from trunkline_workflow.definition import DefinitionError, parse_definition

    try:
        return parse_definition(text)
    except DefinitionError as error:
        problems = "\n".join(f"  {what}, {problem}" for problem in error.problems)
        raise TrunklineError(f"{what} is no workflow.\n{problems}") from error


async def watch(runs: "Runs", view: "RunView") -> "RunView":
    """Return the run when it has ended or needs a person."""
    import anyio

    while not view.ended and not view.approvals:
        await anyio.sleep(0.2)
        view = await runs.view(view.record)
    return view


def print_run(view: "RunView", *, as_json: bool) -> int:
    """Print a run. Return the exit status: 1 for a run that failed or was cancelled."""
    from trunkline.api.cli import print_json, print_text

    if as_json:
        print_json(view.frozen)
    else:
        print_text(run_text(view))
    return 1 if view.status in ("failed", "cancelled") else 0


def run_text(view: "RunView") -> str:
    """Return a run for people."""
    start = view.record.start
    lines = [f"run {start.run}  {start.workflow}  {view.status}", *_visit_lines(view)]
    if view.detail:
        lines.append(view.detail)
    lines += [f"Waits for you: {_about(one.question, one.detail.text)}" for one in view.approvals]
    if view.approvals:
        lines.append(f"  trunkline workflows approve {start.run}    trunkline workflows deny {start.run}")
    if view.is_edited and not view.ended:
        lines.append(
            f"The file of the workflow was changed since this run began. The run keeps its definition; trunkline "
            f"workflows migrate {start.run} continues with the changed file."
        )
    return "\n".join(lines)


def _visit_lines(view: "RunView") -> list[str]:
    from trunkline_workflow.definition import parse_definition

    definition = parse_definition(view.record.start.definition)
    lines = []
    for visit in view.state.visits:
        step = definition.step(visit.step)
        about: list[str] = [step.type, visit.state]
        if visit.attempts > 1:
            about.append(f"{visit.attempts} attempts")
        if step.timeout is not None:
            about.append(f"timeout {step.timeout:g} s")
        if step.type == "approval" and visit.note:
            about.append(visit.note + _by(view, visit.calls))
        lines.append(f"  {visit.step:<16}  {', '.join(about)}")
    return lines


def _by(view: "RunView", calls: list[str]) -> str:
    found = [view.journal.decisions[call] for call in calls if call in view.journal.decisions]
    return f" by {found[-1].by}" if found else ""


def _about(question: str, text: str) -> str:
    return f"{question}\n{text}".strip()
