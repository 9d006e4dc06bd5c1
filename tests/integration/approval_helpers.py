"""Shared by the tests of approvals and questions: models that ask, and people who decide or answer."""

import json
from typing import Any

import anyio

from trunkline.contracts.approvals.messages import Approval
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.feed_messages import ToolEnded
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.subjects import INBOX
from trunkline.testing.platform import PlatformClient
from trunkline_bus import new_id


def asking(provider: str, **settings: Any) -> dict[str, Any]:
    """Settings of a platform that asks."""
    return {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
        "permissions.approvals": "some",
        **settings,
    }


def write(path: str, content: str = "x") -> str:
    """A program whose model writes a file."""
    return f"call:write_file {json.dumps({'path': path, 'content': content})} ;; say:done"


def ask(question: str, *options: str, then: str = "quote") -> str:
    """A program whose model asks."""
    return f"call:ask_human {json.dumps({'question': question, 'options': options})} ;; {then}"


async def waiting(talker: PlatformClient, count: int = 1, seconds: float = 60.0) -> tuple[Approval, ...]:
    """The approvals, once so many wait."""
    with anyio.fail_after(seconds):
        while len(found := await talker.gateway.waiting()) != count:  # noqa: ASYNC110  asked over the bus
            await anyio.sleep(0.05)
    return found


async def question_of(talker: PlatformClient, accepted: MessageAccepted, text: str = "") -> Approval:
    """The question of this turn, once it waits."""
    with anyio.fail_after(60):
        while True:
            for approval in await talker.gateway.waiting():
                if approval.turn == accepted.turn and text in approval.detail.text:
                    return approval
            await anyio.sleep(0.05)


async def asked_by(talker: PlatformClient, text: str, **given: Any) -> tuple[MessageAccepted, Approval]:
    """Say it, and wait for its question."""
    accepted = await talker.send(text, **given)
    return accepted, await question_of(talker, accepted)


async def scheduled(talker: PlatformClient, text: str) -> MessageAccepted:
    """Return a message without an author: it came due, as the pulse's do (C29)."""
    message = Message(id=new_id("msg"), role="user", content=text)
    request = TurnRequested(
        turn=new_id("turn"), block="main", conversation=new_id("conv"), message=message, actor="pulse",
        permissions=("*",), channel="pulse", trigger="schedule",
    )  # fmt: skip
    await talker.bus.append(INBOX, request, conversation=request.conversation)
    return MessageAccepted(
        block="main", conversation=request.conversation, turn=request.turn, message_id=message.id
    )


def results(events: tuple[object, ...]) -> list[str]:
    return [event.output for event in events if isinstance(event, ToolEnded)]


async def decide(gateway: GatewayClient, asked: Approval, allow: bool, scope: Any = "once") -> None:
    await gateway.decide(asked.turn, asked.call, asked.call_hash, allow=allow, scope=scope)


async def answer(gateway: GatewayClient, asked: Approval, text: str, allow: bool = True) -> None:
    await gateway.decide(asked.turn, asked.call, asked.call_hash, allow=allow, answer=text)
