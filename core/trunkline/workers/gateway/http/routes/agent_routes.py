"""Agents that work for other agents under ``/api/agents``: their tasks, and the way to end them."""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.agents.messages import AgentTask, EndAgent, LastingAgent, ListAgents
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.agent_schemas import AgentItems, AgentTaskItem, LastingAgentItem
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

NO_CONTENT = 204


async def list_agents(request: Request) -> Response:
    """``GET /api/agents``"""
    found = await services_of(request).agents.list_agents(ListAgents(), sender_of(request))
    agents, tasks = tuple(map(_agent, found.agents)), tuple(map(_task, found.tasks))
    return json_response(AgentItems(agents=agents, tasks=tasks))


async def end(request: Request) -> Response:
    """``POST /api/agents/{id}/end``"""
    await services_of(request).agents.end(EndAgent(id=request.path_params["id"]), sender_of(request))
    return Response(status_code=NO_CONTENT)


ROUTES = (
    ScopedRoute("/api/agents", list_agents, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/agents/{id}/end", end, methods=["POST"], scope=TokenScope.OPERATE),
)


def _task(task: AgentTask) -> AgentTaskItem:
    parent = task.parent
    return AgentTaskItem(
        id=task.id,
        block=task.block,
        conversation=task.conversation,
        agent=parent.agent,
        agent_id=parent.agent_id,
        type=parent.types[-1] if parent.types else "",
        state=task.state,
        awaited=task.awaited,
        depth=parent.depth,
        parent_turn=parent.turn,
        parent_conversation=parent.conversation,
        root=parent.root,
        root_conversation=parent.root_conversation,
        started_at=task.started_at,
        deadline=task.deadline,
        ended_at=task.ended_at,
    )


def _agent(agent: LastingAgent) -> LastingAgentItem:
    return LastingAgentItem(
        id=agent.id,
        name=agent.name,
        block=agent.block,
        type=agent.definition.type,
        conversation=agent.conversation,
        parent_conversation=agent.parent_conversation,
        created_at=agent.created_at,
    )
