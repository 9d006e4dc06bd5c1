"""``trunkline schedules``: shows the schedules of all blocks, their runs and next times, and runs or pauses them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from trunkline import PluginSettings
from trunkline.api.cli import Command, Group
from trunkline_pulse.settings import PulseSettings

if TYPE_CHECKING:
    from trunkline.api.bus import Bus
    from trunkline_pulse.schedule_views import ScheduleView

EXAMPLES = """
trunkline schedules list
trunkline schedules show briefing
trunkline schedules run briefing
trunkline schedules pause briefing
"""

ZoneOf = Callable[[], ZoneInfo]


def schedules_group(settings: PluginSettings) -> click.Group:
    """Return the commands."""

    def zone() -> ZoneInfo:
        return settings.section(PulseSettings).zone()

    @click.group("schedules", cls=Group, examples=EXAMPLES)
    def schedules() -> None:
        """Show what agents do by the clock, and run, pause or remove it.

        A schedule is the file blocks/BLOCK/schedules/NAME.toml in memory. Ask an agent to add one, or write the file.
        """

    for command in (
        _list_command(zone),
        _show_command(zone),
        _run_command(),
        _switch_command("pause", "Stop a schedule until it is resumed."),
        _switch_command(
            "resume", "Let a paused schedule run again. What was missed meanwhile is not made up for."
        ),
        _remove_command(),
    ):
        schedules.add_command(command)
    return schedules


def _list_command(zone: ZoneOf) -> click.Command:
    @click.command(
        "list", cls=Command, examples="trunkline schedules list\ntrunkline schedules list --block main --json"
    )
    @click.option("--block", default="", help="Only the schedules of this block.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON; times are UTC.")
    def list_schedules(block: str, as_json: bool) -> None:
        """List the schedules with their last run and next time, and the files that must be corrected."""
        from trunkline.api.cli import print_json, print_table, print_text, with_workers
        from trunkline_pulse.schedule_views import list_views, view_as_json, view_row

        own = zone()
        views = with_workers(lambda bus: list_views(bus, own, block), "memory")
        if as_json:
            print_json({"schedules": [view_as_json(view) for view in views]})
            return
        if not views:
            click.echo("No schedules.", err=True)
            return
        print_table(
            [view_row(view, own) for view in views],
            header=("BLOCK", "SCHEDULE", "TYPE", "TIMES", "LAST RUN", "NEXT"),
        )
        for view in views:
            if view.source.problem:
                print_text(view.source.problem)

    return list_schedules


def _show_command(zone: ZoneOf) -> click.Command:
    @click.command(
        "show",
        cls=Command,
        examples="trunkline schedules show briefing\ntrunkline schedules show briefing --block main --json",
    )
    @click.argument("name")
    @click.option("--block", default="", help="The block, if several have a schedule of this name.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON; times are UTC.")
    def show(name: str, block: str, as_json: bool) -> None:
        """Show a schedule: its file, its next times and its last runs."""
        from trunkline.api.cli import print_json, print_text, with_workers
        from trunkline_pulse.schedule_views import find_view, view_as_json, view_text

        own = zone()
        view: ScheduleView = with_workers(lambda bus: find_view(bus, own, name, block), "memory")
        if as_json:
            print_json(view_as_json(view))
        else:
            print_text(view_text(view, own))

    return show


def _run_command() -> click.Command:
    @click.command("run", cls=Command, examples="trunkline schedules run briefing")
    @click.argument("name")
    @click.option("--block", default="", help="The block, if several have a schedule of this name.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    def run(name: str, block: str, as_json: bool) -> None:
        """Run a schedule once now, also a paused one. Its other times stay as they are.

        The run begins as soon as the platform runs and no panic is in effect.
        """
        from trunkline_pulse.schedule_changes import run_now

        _report(lambda bus: run_now(bus, name, block), f"The schedule {name} runs.", as_json)

    return run


def _switch_command(verb: str, help: str) -> click.Command:
    @click.command(verb, cls=Command, examples=f"trunkline schedules {verb} briefing", help=help)
    @click.argument("name")
    @click.option("--block", default="", help="The block, if several have a schedule of this name.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    def switch(name: str, block: str, as_json: bool) -> None:
        from trunkline_pulse.schedule_changes import switch_schedule

        done = f"The schedule {name} is {'paused' if verb == 'pause' else 'resumed'}."
        _report(lambda bus: switch_schedule(bus, name, block, verb == "resume"), done, as_json)

    return switch


def _remove_command() -> click.Command:
    @click.command("remove", cls=Command, examples="trunkline schedules remove briefing --yes")
    @click.argument("name")
    @click.option("--block", default="", help="The block, if several have a schedule of this name.")
    @click.option("--yes", is_flag=True, help="Do not ask.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    def remove(name: str, block: str, yes: bool, as_json: bool) -> None:
        """Remove a schedule. The history of memory keeps its file."""
        from trunkline.api.cli import confirm
        from trunkline_pulse.schedule_changes import remove_schedule

        if not yes:
            confirm(f"Remove the schedule {name}?")
        _report(lambda bus: remove_schedule(bus, name, block), f"The schedule {name} is removed.", as_json)

    return remove


def _report(job: "Callable[[Bus], Any]", done: str, as_json: bool) -> None:
    """Carry out a change, and print the block and the name of the schedule."""
    from trunkline.api.cli import print_done, print_json, with_workers

    block, name = with_workers(job, "memory")
    if as_json:
        print_json({"block": block, "schedule": name})
    else:
        print_done(done)
