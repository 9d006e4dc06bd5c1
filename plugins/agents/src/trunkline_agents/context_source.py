"""The list of types in a turn's context: names and descriptions, never their instructions."""

from collections.abc import Sequence

from trunkline import ContextPart, ToolError, TurnInfo
from trunkline.api.turn import StatusShown
from trunkline_agents.agent_type import AgentType
from trunkline_agents.reader import read_agent_types

USAGE = "Types of agents, each with what it is for. agent_run gives a task to one."


class AgentTypeContext:
    """The context source. What it says is data: a type has no more rights than the agent that uses it."""

    name = "agent-types"

    async def __call__(self, turn: TurnInfo) -> Sequence[ContextPart | StatusShown]:
        """Yield no context if the block has no types."""
        try:
            found = await read_agent_types(turn.memory)
        except ToolError:
            return ()
        lines = [one.line for one in found.values() if isinstance(one, AgentType)]
        if not lines:
            return ()
        text = "\n".join([USAGE, *lines])
        return [
            ContextPart(source="agent-types", text=text, priority=40, share=0.05, rest="list_agents has all.")
        ]
