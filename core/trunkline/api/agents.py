"""Agents that work for an agent: what a tool gives them and receives from them (``context.agents``)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.contracts.agents.agents import Agents as Agents
    from trunkline.contracts.agents.agents import DefinitionSource as DefinitionSource
    from trunkline.contracts.agents.agents import NoAgents as NoAgents
    from trunkline.contracts.agents.messages import AgentDefinition as AgentDefinition
    from trunkline.contracts.agents.messages import AgentList as AgentList
    from trunkline.contracts.agents.messages import AgentReport as AgentReport
    from trunkline.contracts.agents.messages import AgentTask as AgentTask
    from trunkline.contracts.agents.messages import EndedState as EndedState
    from trunkline.contracts.agents.messages import LastingAgent as LastingAgent
    from trunkline.contracts.agents.names import is_agent_name as is_agent_name
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
