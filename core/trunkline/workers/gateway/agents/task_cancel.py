"""The cancel of a task of an agent."""

from trunkline.contracts.agents.messages import AgentTask
from trunkline.contracts.turns.messages import TurnCancelRequested
from trunkline.contracts.turns.subjects import INBOX
from trunkline_bus import Bus, Scope, key_of


async def cancel_task(bus: Bus, task: AgentTask, by: str) -> None:
    """Cancel the turn of a task. Its own tasks are cancelled when it ends. A repeat changes nothing. Raises
    BusError.
    """
    item = TurnCancelRequested(turn=task.id, by=by)
    scope = Scope(block=task.block, conversation=task.conversation, turn=task.id)
    msg_id = key_of("cancel", task.id, by)
    await bus.append(INBOX, item, scope=scope, msg_id=msg_id, conversation=task.conversation)
