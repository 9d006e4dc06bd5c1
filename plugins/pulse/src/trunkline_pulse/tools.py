"""The tools: schedules of any type (pulses), and cron jobs, which are messages to the agent.

Each change is a change of a file that runs in the owner's name, so the owner is asked about each call, and is shown the
resolved times.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from trunkline import ApprovalDetail, Tool, ToolContext, ToolError, ToolOutcome, preview, tool
from trunkline.api.files import SettingsFileError
from trunkline.api.memory import utc_now
from trunkline.api.schedule import SCHEDULES_FOLDER, schedule_path
from trunkline.api.tool import Proceed, Stage, ToolInvocation
from trunkline_pulse.schedule import Missed, Overlap, Schedule, ScheduleType
from trunkline_pulse.schedule_file import read_schedule, write_schedule
from trunkline_pulse.schedule_request import (
    TimeArguments,
    build_schedule,
    describe_schedule,
    describe_times,
    format_due,
)
from trunkline_pulse.times import next_due

LOG_FILE = "pulse.log"


class ScheduleTools:
    """The tools that change schedules. ``zone`` is the time zone of schedules that name none."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone

    def pulse(self, arguments: dict[str, Any]) -> Schedule:
        """Return the schedule that a call of ``set_pulse`` means. Raises ToolError."""
        rest = dict(arguments)
        times = TimeArguments(
            when=rest.pop("when", ""),
            cron=rest.pop("cron_expression", ""),
            interval=rest.pop("interval", None),
            time_zone=rest.pop("time_zone", ""),
        )
        announce = rest.pop("alert_monitor", None)
        return build_schedule(
            rest.pop("id", ""),
            times,
            utc_now(),
            self._zone,
            expires_in=rest.pop("expires_in", None),
            announce=announce,
            **rest,
        )

    def cron_job(self, arguments: dict[str, Any]) -> Schedule:
        """Return the schedule that a call of ``schedule_cron_job`` means. Raises ToolError."""
        times = TimeArguments(
            when=arguments.get("when", ""),
            cron=arguments.get("cron_expression", ""),
            time_zone=arguments.get("time_zone", ""),
        )
        return build_schedule(
            arguments.get("name", ""),
            times,
            utc_now(),
            self._zone,
            type="cron",
            instruction=arguments.get("instruction", ""),
            channel=arguments.get("target", ""),
        )

    async def save(self, context: ToolContext, name: str, schedule: Schedule) -> str:
        """Save a schedule that the owner has approved, and say when it is due. Raises ToolError."""
        await context.administration.save_schedule(name, write_schedule(schedule))
        due = next_due(schedule, utc_now() - timedelta(seconds=1), self._zone)
        when = format_due(due, schedule.zone(self._zone)) if due is not None else "never"
        return f"Saved the schedule {name}: {describe_times(schedule)}, next {when}."

    def shown(self, name: str, schedule: Schedule) -> ApprovalDetail:
        """Return what the owner is shown of a call."""
        return preview("message", describe_schedule(name, schedule, utc_now(), self._zone))

    async def listed(self, context: ToolContext, types: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return the schedules of the block, also those that must be corrected. Raises ToolError."""
        try:
            entries = await context.memory.list(SCHEDULES_FOLDER)
        except ToolError as error:
            if error.kind == "not_found":
                return []
            raise
        found: list[dict[str, Any]] = []
        for entry in entries:
            name = entry.path.rpartition("/")[2].removesuffix(".toml")
            if entry.path.endswith(".toml"):
                listed = self._listed(context, name, (await context.memory.read(entry.path)).content)
                if not types or listed.get("type") in types or "problem" in listed:
                    found.append(listed)
        return found

    def _listed(self, context: ToolContext, name: str, text: str) -> dict[str, Any]:
        try:
            schedule = read_schedule(schedule_path(context.block, name), text)
        except SettingsFileError as error:
            return {"id": name, "problem": str(error)}
        due = next_due(schedule, utc_now(), self._zone) if schedule.enabled else None
        return {
            "id": name,
            "type": schedule.type,
            "instruction": schedule.instruction,
            "times": describe_times(schedule),
            "next": format_due(due, schedule.zone(self._zone)) if due is not None else None,
            "enabled": schedule.enabled,
        }


class ScheduleCallCheck:
    """Refuses a call that means no valid schedule before the owner is asked about it."""

    stage: Stage = "schema"

    def __init__(self, tools: ScheduleTools) -> None:
        self._tools = tools

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Raise ToolError ``invalid_arguments`` for such a call."""
        if invocation.spec.name == "set_pulse":
            self._tools.pulse(invocation.arguments)
        elif invocation.spec.name == "schedule_cron_job":
            self._tools.cron_job(invocation.arguments)
        return await proceed(invocation)


def pulse_tools(own: ScheduleTools) -> list[Tool]:
    """Return the tools of pulses."""

    @tool(effect="write", administers=True)
    async def set_pulse(
        context: ToolContext,
        id: str,
        instruction: str,
        type: ScheduleType = "cron",
        when: str = "",
        cron_expression: str = "",
        interval: int | None = None,
        time_zone: str = "",
        expires_in: int | None = None,
        alert_monitor: bool | None = None,
        condition: str = "",
        channel: str = "",
        model: str | None = None,
        overlap: Overlap = "skip",
        missed: Missed = "once",
        jitter: int = 0,
    ) -> str:
        """Add or replace a schedule of this block. Say when by exactly one of when, cron_expression and interval.

        Args:
            id: The name of the schedule: small letters, digits, dashes and underscores.
            instruction: The message to you; for a script its text, for a webhook the address to fetch.
            type: cron and alert are messages to you, and the owner is told of the answer to an alert; heartbeat is a
                message to which you answer ALL QUIET if there is nothing to tell; script runs a script; webhook fetches
                an address; log adds a line to pulse.log.
            when: A time in words, such as "every weekday at 8", "every 15 minutes" or "2026-12-24 18:00".
            cron_expression: Five fields: minute, hour, day, month and weekday.
            interval: Seconds between two runs; the first one is at once.
            time_zone: The time zone of the times, such as Europe/Lisbon.
            expires_in: Seconds after which it ends.
            alert_monitor: Whether the owner is told of each result.
            condition: Run only if it is true, such as "memory_percent > 80".
            channel: The channel that tells the owner of each result.
            model: The model that answers, such as a cheap one for a heartbeat.
            overlap: What to do while the previous run lasts.
            missed: Which times to make up for after nothing ran.
            jitter: Delay each run by up to so many seconds.
        """
        schedule = own.pulse(
            {
                "id": id, "instruction": instruction, "type": type, "when": when, "cron_expression": cron_expression,
                "interval": interval, "time_zone": time_zone, "expires_in": expires_in, "alert_monitor": alert_monitor,
                "condition": condition, "channel": channel, "model": model, "overlap": overlap, "missed": missed,
                "jitter": jitter,
            }
        )  # fmt: skip
        return await own.save(context, id, schedule)

    @set_pulse.previewer
    def _shown(context: ToolContext, id: str, **arguments: Any) -> ApprovalDetail:
        return own.shown(id, own.pulse({"id": id, **arguments}))

    @tool(effect="read", untrusted_output=True, derived=True)
    async def list_pulses(context: ToolContext) -> list[dict[str, Any]]:
        """List the schedules of this block with their next times, and the files that must be corrected."""
        return await own.listed(context)

    @tool(effect="write", administers=True)
    async def remove_pulse(context: ToolContext, id: str) -> str:
        """Remove a schedule of this block.

        Args:
            id: The name of the schedule, as list_pulses shows it.
        """
        await context.administration.remove_schedule(id)
        return f"Removed the schedule {id}."

    @tool(effect="write")
    async def pulse_log(context: ToolContext, text: str, schedule: str = "") -> str:
        """Add a line with the time to pulse.log of this block.

        Args:
            text: The line.
            schedule: The schedule that adds it.
        """
        from trunkline.api.memory import update_text

        line = " ".join(
            part for part in (f"{utc_now():%Y-%m-%dT%H:%M:%SZ}", schedule, " ".join(text.split())) if part
        )
        await update_text(context.memory, LOG_FILE, lambda old: f"{old}{line}\n")
        return f"Logged: {line}"

    return [set_pulse, list_pulses, remove_pulse, pulse_log]


def cron_tools(own: ScheduleTools) -> list[Tool]:
    """Return the tools of cron jobs."""

    @tool(effect="write", administers=True)
    async def schedule_cron_job(
        context: ToolContext,
        name: str,
        instruction: str,
        when: str = "",
        cron_expression: str = "",
        time_zone: str = "",
        target: str = "",
    ) -> str:
        """Have yourself sent a message at certain times. Say when by exactly one of when and cron_expression.

        Args:
            name: The name of the job: small letters, digits, dashes and underscores.
            instruction: The message.
            when: A time in words, such as "every weekday at 8" or "every month on the 1st at 9".
            cron_expression: Five fields: minute, hour, day, month and weekday.
            time_zone: The time zone of the times, such as Europe/Lisbon.
            target: The channel that tells the owner of each answer, such as telegram.
        """
        schedule = own.cron_job(
            {
                "name": name, "instruction": instruction, "when": when, "cron_expression": cron_expression,
                "time_zone": time_zone, "target": target,
            }
        )  # fmt: skip
        return await own.save(context, name, schedule)

    @schedule_cron_job.previewer
    def _shown(context: ToolContext, name: str, **arguments: Any) -> ApprovalDetail:
        return own.shown(name, own.cron_job({"name": name, **arguments}))

    @tool(effect="read", untrusted_output=True, derived=True)
    async def list_cron_jobs(context: ToolContext) -> list[dict[str, Any]]:
        """List the schedules of this block that send you messages, with their next times."""
        return await own.listed(context, ("cron", "alert", "heartbeat"))

    @tool(effect="write", administers=True)
    async def remove_cron_job(context: ToolContext, name: str) -> str:
        """Remove a cron job of this block.

        Args:
            name: The name of the job, as list_cron_jobs shows it.
        """
        await context.administration.remove_schedule(name)
        return f"Removed the schedule {name}."

    return [schedule_cron_job, list_cron_jobs, remove_cron_job]
