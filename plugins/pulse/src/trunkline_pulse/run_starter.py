"""RunStarter: sends the message of a due schedule to the gateway, as a channel sends a person's message.

A turn's id follows from the schedule and the due time, so a message that is sent again is the same turn. Programs and
addresses are no exception: their turn begins with the command ``/tool``, so that policies, approvals and the sandbox
apply as for a person.
"""

import json
from datetime import datetime

from trunkline import RemoteFault
from trunkline.api.gateway import GatewayClient, MessageAccepted, SendMessage
from trunkline.api.schedule import ScheduleState
from trunkline_pulse.schedule import Schedule

ALL_QUIET = "ALL QUIET"
"""The answer to a heartbeat when there is nothing to tell."""

_NOTE = (
    "The schedule {name!r} of this block sent this message at {due}; no person typed it just now. "
    "Nobody may be there to answer a question."
)
_QUIET_NOTE = (
    f" If there is nothing that the owner should know now, answer with {ALL_QUIET} and nothing else. "
    "Do not explain that nothing happened."
)


class RunStarter:
    """Starts the runs of schedules through a client of the gateway.

    Methods raise RemoteFault if the gateway refuses, and Unavailable if no gateway answers.
    """

    def __init__(self, client: GatewayClient) -> None:
        self._client = client

    async def start(
        self, state: ScheduleState, schedule: Schedule, due: datetime, *, by_hand: bool = False
    ) -> MessageAccepted:
        """Send the message of a due time. It counts once, however often it is sent."""
        kind = "hand" if by_hand else "due"
        message = SendMessage(
            content=message_text(schedule, state.name),
            block=state.block,
            client_id=f"{kind}:{state.name}:{due.isoformat()}",
            trigger="schedule",
            instructions=_instructions(schedule, state.name, due),
            model=schedule.model,
        )
        if schedule.overlap == "queue":
            return await self._queue(state, message)
        return await self._client.send(message)

    async def is_running(self, turn: str) -> bool:
        """Report whether a turn has not ended. A turn that is not known any more has."""
        try:
            return (await self._client.turn(turn)).status != "finished"
        except RemoteFault as fault:
            if fault.code == "not_found":
                return False
            raise

    async def _queue(self, state: ScheduleState, message: SendMessage) -> MessageAccepted:
        """Send a message to the conversation that all runs share, where one turn runs after the other."""
        from msgspec.structs import replace

        if state.conversation:
            try:
                return await self._client.send(replace(message, conversation=state.conversation, block=None))
            except RemoteFault as fault:
                if fault.code != "not_found":
                    raise
        return await self._client.send(message)  # the first run, or the conversation was deleted


def message_text(schedule: Schedule, name: str) -> str:
    """Return the message of a run: the instruction, or the command that carries it out."""
    text = schedule.instruction.strip()
    if schedule.type == "script":
        return _command("execute_command", command=["sh", "-c", text])
    if schedule.type == "webhook":
        return _command("fetch_webpage", url=text)
    if schedule.type == "log":
        return _command("pulse_log", schedule=name, text=text)
    return text


def _command(tool: str, **arguments: object) -> str:
    return f"/tool {tool} json={json.dumps(arguments, ensure_ascii=False)}"


def _instructions(schedule: Schedule, name: str, due: datetime) -> str:
    if schedule.type in ("script", "webhook", "log"):
        return ""
    note = _NOTE.format(name=name, due=due.isoformat(timespec="seconds"))
    return note + (_QUIET_NOTE if schedule.type == "heartbeat" else "")
