"""The requests of a client over its socket. Each is acknowledged when the bus has it, and refused as over HTTP."""

from trunkline.contracts.gateway.messages import CancelTurn, MessageAccepted, SendMessage
from trunkline.contracts.turns.messages import ApprovalDecided
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.services import Services
from trunkline.workers.gateway.socket.client_envelopes import (
    ApprovalResponse,
    SendCancel,
    SendChat,
    SendSteer,
)
from trunkline.workers.gateway.socket.server_envelopes import AckPayload

Command = SendChat | SendSteer | SendCancel | ApprovalResponse


async def run_command(services: Services, sender: Sender, command: Command) -> AckPayload:
    """Do what a client asks, and return the acknowledgement.

    Raises Refusal and BusError. If the bus did not answer, the request may be repeated.
    """
    match command:
        case SendChat(payload=new):
            message = SendMessage(
                content=new.content,
                block=new.block,
                conversation=new.conversation,
                client_id=new.client_id,
                metadata=new.metadata,
                shows=new.shows,
            )
            return _accepted(command.id, await services.messages.send(message, sender))
        case SendSteer(payload=steer):
            message = SendMessage(
                content=steer.content,
                client_id=steer.client_id,
                metadata=steer.metadata,
                shows=steer.shows,
                steer=steer.turn,
            )
            return _accepted(command.id, await services.messages.send(message, sender))
        case SendCancel(payload=cancel):
            await services.messages.cancel(CancelTurn(turn=cancel.turn, mode=cancel.mode), sender)
            return AckPayload(reply_to=command.id, turn=cancel.turn)
        case ApprovalResponse():
            return await _decide(services, sender, command)


async def _decide(services: Services, sender: Sender, command: ApprovalResponse) -> AckPayload:
    given = command.payload
    if given.allow is None and not given.answer:
        raise InvalidField(("payload", "allow"), "Say allow, true or false, or answer the question.")
    decided = ApprovalDecided(
        turn=given.turn,
        call=given.call,
        call_hash=given.hash,
        allow=True if given.allow is None else given.allow,
        by="",
        scope=given.scope,
        answer=given.answer,
    )
    repeated = await services.approvals.decide(decided, sender)
    return AckPayload(reply_to=command.id, turn=given.turn, duplicate=repeated is not None)


def _accepted(reply_to: str, accepted: MessageAccepted) -> AckPayload:
    return AckPayload(
        reply_to=reply_to,
        block=accepted.block,
        conversation=accepted.conversation,
        turn=accepted.turn,
        message_id=accepted.message_id,
        duplicate=accepted.duplicate,
        otherwise=accepted.otherwise,
    )
