"""Handlers for the gateway's bus endpoints: one row for each operation. The subject identifies the sending channel."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from trunkline.contracts.agents import subjects as agents
from trunkline.contracts.agents.messages import AgentView, LastingAgent
from trunkline.contracts.blocks.messages import Block, BlockView
from trunkline.contracts.conversations.messages import ConversationFound
from trunkline.contracts.gateway import subjects as gateway
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.gateway.messages import ChangeConversation, CommandSucceeded
from trunkline.contracts.gateway.operation import GatewayOperation
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.auth.handlers import senders_of
from trunkline.workers.gateway.errors import refusal, refuse_errors
from trunkline.workers.gateway.notice_preferences import read_notice_preferences
from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.services import Services
from trunkline_bus import Endpoint, Request, Service

Req = TypeVar("Req")
Rep = TypeVar("Rep")


async def register_handlers(own: Services, service: Service) -> None:
    """Register every endpoint. The row of an operation binds it to the service that does the work."""

    async def add(endpoint: Endpoint[Req, Rep], handler: Callable[[Request[Req]], Awaitable[Rep]]) -> None:
        checked = _with_scope(endpoint, handler) if isinstance(endpoint, GatewayOperation) else handler
        await service.add(endpoint, refuse_errors(checked))

    await add(gateway.SEND_MESSAGE, lambda asked: own.messages.send(asked.data, sender_of(asked)))
    await add(gateway.FORK_TURN, lambda asked: own.messages.fork(asked.data, sender_of(asked)))
    await add(gateway.CANCEL_TURN, lambda asked: _done(own.messages.cancel(asked.data, sender_of(asked))))
    await add(gateway.GET_TURN, lambda asked: own.messages.get_turn(asked.data.turn, sender_of(asked)))
    await add(
        gateway.DECIDE_APPROVAL, lambda asked: _done(own.approvals.decide(asked.data, sender_of(asked)))
    )
    await add(
        gateway.LIST_APPROVALS, lambda asked: own.approvals.list_approvals(asked.data, sender_of(asked))
    )
    await add(gateway.GET_APPROVAL, lambda asked: own.approvals.get_approval(asked.data.id, sender_of(asked)))
    await add(gateway.LIST_GRANTS, lambda asked: own.grants.list_grants(sender_of(asked)))
    await add(
        gateway.FORGET_GRANT,
        lambda asked: _done(own.grants.revoke(asked.data.id, sender_of(asked))),
    )
    await add(gateway.GET_CONVERSATION, lambda asked: own.conversations.view(asked.data, sender_of(asked)))
    await add(
        gateway.LIST_CONVERSATIONS,
        lambda asked: own.conversations.list_conversations(asked.data, sender_of(asked)),
    )
    await add(gateway.GET_FILE, lambda asked: own.conversations.file(asked.data, sender_of(asked)))
    await add(gateway.GET_CONTEXT, lambda asked: own.conversations.context(asked.data, sender_of(asked)))
    await add(gateway.CHANGE_CONVERSATION, lambda asked: _change_conversation(own, asked))
    await add(
        gateway.GET_BRANCHES,
        lambda asked: own.conversations.branches(asked.data.conversation, sender_of(asked)),
    )
    await add(
        gateway.EXPORT_CONVERSATION, lambda asked: own.conversations.export(asked.data, sender_of(asked))
    )
    await add(agents.START_TASK, lambda asked: own.agents.start(asked.data))
    await add(agents.CREATE_AGENT, lambda asked: _agent(own.agents.create(asked.data)))
    await add(agents.TERMINATE_AGENT, lambda asked: _agent(own.agents.terminate(asked.data)))
    await add(agents.LIST_OWN_AGENTS, lambda asked: own.agents.own(asked.data))
    await add(gateway.LIST_AGENTS, lambda asked: own.agents.list_agents(asked.data, sender_of(asked)))
    await add(gateway.END_AGENT, lambda asked: _done(own.agents.end(asked.data, sender_of(asked))))
    await add(gateway.STORE_MESSAGES, lambda asked: own.conversations.store(asked.data))
    await add(gateway.LOAD_MESSAGES, lambda asked: own.conversations.load(asked.data))
    await add(gateway.GET_ANSWERER, lambda asked: own.models.answerer(asked.data, sender_of(asked)))
    await add(gateway.CHOOSE_MODEL, lambda asked: own.models.choose(asked.data, sender_of(asked)))
    await add(gateway.GET_MODELS, lambda asked: own.models.list_models(asked.data))
    await add(gateway.GET_NOTICE_PREFERENCES, lambda asked: read_notice_preferences(own.bus))
    await add(gateway.GET_COSTS, lambda asked: own.costs.sums(asked.data, sender_of(asked)))
    await add(gateway.LINK_SENDER, lambda asked: own.auth.senders.link(sender_of(asked).channel, asked.data))
    await add(gateway.GET_SENDERS, lambda asked: senders_of(own.auth, sender_of(asked).channel))
    await add(
        gateway.LIST_BLOCKS,
        lambda asked: own.blocks.list_blocks(sender_of(asked), archived=asked.data.archived),
    )
    await add(
        gateway.SHOW_BLOCK, lambda asked: _view(own.blocks.get_block(asked.data.name, sender_of(asked)))
    )
    await add(gateway.LIST_BLOCK_TEMPLATES, lambda asked: own.blocks.list_templates(sender_of(asked)))
    await add(gateway.CREATE_BLOCK, lambda asked: _view(own.blocks.create(asked.data, sender_of(asked))))
    await add(gateway.CHANGE_BLOCK, lambda asked: _view(own.blocks.change(asked.data, sender_of(asked))))
    await add(gateway.STOP_BLOCK, lambda asked: own.blocks.stop(asked.data, sender_of(asked)))
    await add(gateway.RESET_BLOCK, lambda asked: _view(own.blocks.reset(asked.data, sender_of(asked))))
    await add(
        gateway.ARCHIVE_BLOCK, lambda asked: _done(own.blocks.archive(asked.data.name, sender_of(asked)))
    )
    await add(
        gateway.RESTORE_BLOCK, lambda asked: _view(own.blocks.restore(asked.data.name, sender_of(asked)))
    )
    await add(gateway.DELETE_BLOCK, lambda asked: _done(own.blocks.delete(asked.data, sender_of(asked))))


async def _change_conversation(own: Services, request: Request[ChangeConversation]) -> ConversationFound:
    return ConversationFound(summary=await own.conversations.change(request.data, sender_of(request)))


async def _agent(agent: Awaitable[LastingAgent]) -> AgentView:
    return AgentView(agent=await agent)


async def _view(block: Awaitable[Block]) -> BlockView:
    return BlockView(block=await block)


async def _done(command: Awaitable[object]) -> CommandSucceeded:
    await command
    return CommandSucceeded()


def _with_scope(
    operation: GatewayOperation[Req, Rep], handler: Callable[[Request[Req]], Awaitable[Rep]]
) -> Callable[[Request[Req]], Awaitable[Rep]]:
    """Return the handler behind a check of the operation's scope."""

    async def checked(request: Request[Req]) -> Rep:
        if not sender_of(request).identity.may(operation.scope):
            raise refusal(ErrorCode.FORBIDDEN)
        return await handler(request)

    return checked


def sender_of(request: Request[Any]) -> Sender:
    """Return the sender of a request. A worker's credentials allow only the worker's own channel in the subject."""
    channel = request.keys["channel"]
    return Sender(channel, Identity(id=f"channel:{channel}", type="owner"))
